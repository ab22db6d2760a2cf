import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Interaction } from "../../../src/slack/receive/interaction.ts";
import * as readers from "../../../src/slack/receive/read-interaction.ts";
import { elementValue } from "../../../src/slack/receive/read-view.ts";

const us = { botUserId: "UBOT" };
/** As the listeners do. What Slack sends may lack anything, whatever Bolt's types say. */
// oxlint-disable-next-line typescript/no-explicit-any
function read(body: any): Interaction | undefined {
  if (body?.command) return readers.readCommand(body, 1000);
  switch (body?.type) {
    case "block_actions":
      return readers.readPress(body, 1000);
    case "view_submission":
      return readers.readSubmission(body, 1000);
    case "shortcut":
    case "message_action":
      return readers.readShortcut(body, 1000);
    case "event_callback":
      if (body.event?.type === "app_home_opened") return readers.readHome(body, us, 1000);
      if (["app_mention", "message"].includes(body.event?.type))
        return readers.readMention(body, us, 1000);
  }
  return undefined;
}
const mention = (event: object) =>
  read({
    type: "event_callback",
    event_id: "Ev1",
    team_id: "T1",
    event: {
      type: "app_mention",
      user: "U1",
      channel: "C1",
      ts: "1.5",
      text: "<@UBOT> vm list",
      ...event,
    },
  });

const said = (text: string) => {
  const interaction = mention({ text });
  return interaction?.kind === "mention" ? interaction.text : undefined;
};

const option = (value: string) => ({ value, text: { type: "plain_text", text: value } });

describe("what Slack delivered", () => {
  it("is read into a command, whatever the length of its words", () => {
    expect(
      read({
        command: "/vm",
        text: "  restart web-1 ",
        user_id: "U1",
        team_id: "T1",
        channel_id: "C1",
        trigger_id: "1.2",
      }),
    ).toEqual({
      id: expect.stringMatching(/^command:[0-9a-f]{32}$/),
      at: 1000,
      userId: "U1",
      teamId: "T1",
      channelId: "C1",
      triggerId: "1.2",
      kind: "command",
      text: "vm   restart web-1",
    });
    expect(read({ command: "/vm", text: "", user_id: "U1" })).toMatchObject({ text: "vm" });
  });

  it("bears equal ids when it is the same, and others when it isn't", () => {
    const press = {
      type: "block_actions",
      user: { id: "U1" },
      actions: [{ action_id: "a", value: "1" }],
    };
    expect(read(press)?.id).toBe(read(structuredClone(press))?.id);
    expect(read(press)?.id).not.toBe(
      read({ ...press, actions: [{ action_id: "a", value: "2" }] })?.id,
    );
    expect(read({ ...press, trigger_id: "9" })?.id).toBe(
      read({ ...press, actions: [{}], trigger_id: "9" })?.id,
    );
    const submit = (hash: string, user = "U1", trigger = "1") =>
      read({
        type: "view_submission",
        trigger_id: trigger,
        user: { id: user },
        view: { id: "V1", hash },
      })?.id;
    // Pressed again because the first ack came too late.
    expect(submit("h1", "U1", "1")).toBe(submit("h1", "U1", "2"));
    expect(submit("h1")).not.toBe(submit("h2"));
    expect(submit("h1")).not.toBe(submit("h1", "U2"));
    expect(mention({})?.id).toBe(mention({ edited: { user: "U1" } })?.id);
    expect(mention({})?.id).not.toBe(mention({ ts: "1.6" })?.id);
  });

  it("is words without the mention where it is one, unescaped, without links and backticks", () => {
    expect(said("<@UBOT> vm restart web-1")).toBe("vm restart web-1");
    expect(said("<@UBOT|gatehouse>\n`vm  restart web-1`")).toBe("vm restart web-1");
    expect(said("<@UBOT> vm show <http://web-1.example.com|web-1.example.com>")).toBe(
      "vm show web-1.example.com",
    );
    expect(said("<@UBOT> vm show <https://a.example/x>")).toBe("vm show https://a.example/x");
    expect(said("<@UBOT> vm stop a&amp;b &lt;x&gt; &amp;lt;")).toBe("vm stop a&b <x> &lt;");
    expect(said("hey <@UBOT>, could you *restart web-1* please?")).toBe("restart web-1");
    expect(said("<@UBOT> ask <@U2>")).toBe("ask @U2");
  });

  it("is left alone where it is a mention by anything but a human (X10)", () => {
    for (const mark of [
      { bot_id: "B2" },
      { app_id: "A2" },
      { bot_profile: {} },
      { subtype: "bot_message" },
      { subtype: "message_changed" },
      { subtype: "message_deleted" },
      { subtype: "channel_join" },
      { subtype: "me_message" },
      { subtype: "file_share", bot_id: "B2" },
      { subtype: "thread_broadcast", app_id: "A2" },
      { user: "UBOT" },
      { user: "USLACKBOT" },
      { user: "" },
      { user: undefined },
      { workflow_id: "Wf1" },
    ]) {
      expect([mark, mention(mark)]).toEqual([mark, undefined]);
    }
    expect(
      read({
        type: "event_callback",
        event: { type: "message", user: "U1", text: "<@UBOT> vm stop web-1" },
      }),
    ).toBeUndefined();
    expect(mention({ bot_id: null })).toBeDefined();
    for (const subtype of ["file_share", "thread_broadcast"])
      expect([subtype, mention({ subtype })]).toMatchObject([subtype, { kind: "mention" }]);
  });

  it("names the person's own team, not the one it happened in", () => {
    expect(mention({ user_team: "T9", team: "T1" })).toMatchObject({
      teamId: "T9",
    });
    expect(mention({ thread_ts: "1.1" })).toMatchObject({ teamId: "T1", threadTs: "1.1" });
    expect(
      read({
        type: "block_actions",
        user: { id: "U1", team_id: "T9" },
        team: { id: "T1" },
        actions: [{}],
      }),
    ).toMatchObject({ teamId: "T9" });
  });

  it("brings the view along that it stands in", () => {
    const view = {
      id: "V1",
      type: "modal",
      callback_id: "c",
      hash: "h",
      private_metadata: "p",
      state: { values: { b: { a: { type: "plain_text_input", value: "typed" } } } },
    };
    expect(
      read({
        type: "block_actions",
        user: { id: "U1" },
        container: { type: "view", view_id: "V1" },
        view,
        actions: [{ action_id: "a", selected_option: { value: "chosen" } }],
      }),
    ).toMatchObject({
      value: "chosen",
      viewId: "V1",
      view: {
        type: "modal",
        callback: "c",
        hash: "h",
        privateMetadata: "p",
        values: { b: "typed" },
      },
      ephemeral: false,
    });
  });

  it("is never an error, whatever it is", () => {
    const kinds = fc.constantFrom(
      "block_actions",
      "view_submission",
      "event_callback",
      "shortcut",
      "message_action",
      "app_mention",
      "",
    );
    const body = fc.record(
      {
        type: kinds,
        command: fc.option(fc.string()),
        event: fc.anything(),
        view: fc.anything(),
        actions: fc.anything(),
        user: fc.anything(),
        container: fc.anything(),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(
        fc.oneof(
          body,
          fc.json().map((text): unknown => JSON.parse(text)),
          fc.anything(),
        ),
        (any) => void read(JSON.parse(JSON.stringify(any) ?? "null")),
      ),
      { numRuns: 500 },
    );
  });
});

describe("what was entered in a field", () => {
  it("is a text, an option's value, or a list of them", () => {
    const cases: [object, unknown][] = [
      [{ type: "plain_text_input", value: "x" }, "x"],
      [{ type: "plain_text_input", value: null }, undefined],
      [{ type: "static_select", selected_option: option("a") }, "a"],
      [{ type: "static_select", selected_option: null }, undefined],
      [{ type: "checkboxes", selected_options: [option("a"), option("b")] }, ["a", "b"]],
      [{ type: "checkboxes", selected_options: [] }, []],
      [{ type: "conversations_select", selected_conversation: "C1" }, "C1"],
      [{ type: "conversations_select", selected_conversation: null }, undefined],
      [{ type: "number_input", value: "1e9" }, "1e9"],
      [{}, undefined],
    ];
    for (const [element, value] of cases)
      expect([element, elementValue(element)]).toEqual([element, value]);
  });
});
