import { describe, expect, it } from "vitest";
import { startSlack } from "./start-slack.ts";
import { issueTrigger } from "../../../sandbox/slack/state/views.ts";
import { callApi } from "./call-api.ts";

const start = () => startSlack({ rateLimits: "off" });

describe("what Slack's client does by itself", () => {
  it("shows an ephemeral in a thread only once somebody has replied there", async () => {
    await using slack = await start();
    const olivia = slack.person("olivia");
    const { ts = "" } = await olivia.types("ops", "what is wrong here?");
    const whisper = (text: string) =>
      callApi(slack, "chat.postEphemeral", {
        channel: "C01OPS",
        user: "U0OLIVIA",
        thread_ts: ts,
        text,
      });
    expect(await whisper("to nobody")).toMatchObject({ ok: true });
    await slack.person("amir").types("ops", "looking", { threadTs: ts });
    await whisper("to Olivia");
    const seen = () => olivia.seesChannel("ops").messages.map(({ text }) => text);
    expect(seen()).toEqual(["what is wrong here?", "looking", "to Olivia"]);
  });

  it("invites a person, or the app, to a channel", async () => {
    await using slack = await start();
    const olivia = slack.person("olivia");
    expect(olivia.seesChannel("random").botIsMember).toBe(false);
    expect(await olivia.types("random", "/invite @gatehouse")).toMatchObject({ acked: true });
    expect(olivia.seesChannel("random")).toMatchObject({
      botIsMember: true,
      messages: [{ text: "was added to #random by Olivia Ortiz.", author: { isBot: true } }],
    });
    expect(await olivia.types("random", "/invite @gatehouse")).toMatchObject({
      error: "already_in_channel",
    });
    expect(await olivia.types("random", "/invite @nobody")).toMatchObject({
      error: "user_not_found",
    });
  });

  it("lets nobody write to an app whose messages tab is read-only", async () => {
    await using slack = await start();
    const olivia = slack.person("olivia");
    expect(olivia.seesChannel("gatehouse").readOnly).toBe(false);
    slack.app.messagesTabReadOnly = true;
    expect(olivia.seesChannel("gatehouse").readOnly).toBe(true);
    expect(olivia.seesChannel("ops").readOnly).toBe(false);
    await expect(olivia.types("@gatehouse", "hi")).rejects.toThrow("has been turned off");
  });

  it("fills in the conversation that a person looks at, where the filter lets it be", async () => {
    await using slack = await start();
    const olivia = slack.person("olivia");
    const chosenIn = async (channel: string, filter?: object) => {
      await olivia.types(channel, "hello");
      await callApi(slack, "views.open", {
        trigger_id: issueTrigger(slack.workspace, "U0OLIVIA"),
        view: {
          type: "modal",
          title: { type: "plain_text", text: "Restart" },
          submit: { type: "plain_text", text: "Restart" },
          blocks: [
            {
              type: "input",
              block_id: "where",
              label: { type: "plain_text", text: "Where" },
              element: {
                type: "conversations_select",
                action_id: "a",
                default_to_current_conversation: true,
                ...filter,
              },
            },
          ],
        },
      });
      return olivia.sees().modals[0]?.state["where"]?.["a"]?.selected_conversation;
    };
    expect(await chosenIn("status")).toBe("C02STATUS");
    expect(await chosenIn("secret", { filter: { include: ["public"] } })).toBeNull();
    expect(await chosenIn("@gatehouse", { filter: { include: ["im"] } })).toBe("D0OLIVIA");
  });
});
