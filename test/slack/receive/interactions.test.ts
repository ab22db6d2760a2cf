import type { View } from "@slack/types";
import { describe, expect, it, onTestFinished } from "vitest";
import { card } from "../../../src/messages/card.ts";
import { md } from "../../../src/messages/markdown.ts";
import { stretchDeadlines } from "../../../src/deadline.ts";
import { UserError } from "../../../src/errors.ts";
import type {
  InteractionHandlers,
  SubmissionResult,
} from "../../../src/slack/receive/interaction.ts";
import { shareGateway, startGateway } from "./start-slack.ts";
import { until } from "../../support/until.ts";

const aCard = card({
  title: md`A card`,
  ways: [{ label: "Restart", action: "some.unknown.action", value: "r-1" }],
});

const plain = (text: string) => ({ type: "plain_text" as const, text });
const modal: View = {
  type: "modal",
  callback_id: "reason",
  private_metadata: "r-1",
  title: plain("Why?"),
  submit: plain("Send"),
  blocks: [
    {
      type: "input",
      block_id: "why",
      label: plain("Reason"),
      element: { type: "plain_text_input", action_id: "text" },
    },
    {
      type: "input",
      block_id: "vm",
      optional: true,
      label: plain("VM"),
      element: { type: "external_select", action_id: "pick-vm", min_query_length: 1 },
    },
  ],
};

/** From here on Gatehouse's deadlines have passed, until the test ends. */
function shortenDeadlines(): void {
  stretchDeadlines(0);
  onTestFinished(() => stretchDeadlines(30));
}

/** `/vm card` shows an ephemeral card, `/vm ask` opens the modal. */
const show: InteractionHandlers["handleInteraction"] = async (interaction, reply) => {
  if (interaction.kind === "command" && interaction.text === "vm card")
    await reply.privately(aCard);
  if (interaction.kind === "command" && interaction.text === "vm ask") await reply.open(modal);
};

const shared = shareGateway();

describe("a button", () => {
  it("is acked whatever its name, and says where it was pressed", async () => {
    const { gateway } = shared;
    shared.handlers = { handleInteraction: show };
    const olivia = gateway.slack.person("olivia");
    await olivia.types("ops", "/vm card");
    await olivia.until(() => olivia.seesChannel("ops").messages.some(({ ephemeral }) => ephemeral));
    expect(await olivia.presses("Restart")).toMatchObject({ acked: true });
    const [, interaction] = await gateway.handles(2);
    expect(interaction).toMatchObject({
      kind: "button",
      action: "some.unknown.action",
      value: "r-1",
      ephemeral: true,
      channelId: "C01OPS",
    });
  });

  it("may replace or remove the ephemeral message it is in", async () => {
    const { gateway } = shared;
    shared.handlers = {
      handleInteraction: async (interaction, reply) => {
        if (interaction.kind === "command") return reply.privately(aCard);
        await reply.instead(
          card({ title: md`Sure?`, ways: [{ label: "No", action: "no", value: "" }] }),
        );
      },
    };
    const amir = gateway.slack.person("amir");
    const shown = () => amir.seesChannel("ops").messages.filter(({ ephemeral }) => ephemeral);
    await amir.types("ops", "/vm card");
    await amir.until(() => shown().length === 1);
    await amir.presses("Restart");
    await amir.until(() => shown()[0]?.text === "Sure?");
    expect(shown()).toHaveLength(1);
  });

  it("never replaces a message for everybody that it is in", async () => {
    const { gateway } = shared;
    shared.handlers = {
      handleInteraction: (_ask, reply) => reply.instead(aCard),
    };
    const { slack } = gateway;
    const posted = await gateway.web.call("chat.postMessage", {
      channel: "C01OPS",
      text: "For all",
      blocks: aCard.blocks,
    });
    expect(posted.ok).toBe(true);
    const vera = slack.person("vera");
    await vera.presses("Restart");
    await vera.until(() => vera.seesChannel("ops").messages.some(({ ephemeral }) => ephemeral));
    expect(vera.seesChannel("ops").messages.find(({ ephemeral }) => !ephemeral)?.text).toBe(
      "For all",
    );
  });
});

describe("a modal", () => {
  it("is opened with the trigger, submitted once, and its values are read by block", async () => {
    const { gateway } = shared;
    shared.handlers = { handleInteraction: show };
    const olivia = gateway.slack.person("olivia");
    await olivia.types("ops", "/vm ask");
    await olivia.until((seen) => seen.modals.length === 1);
    const outcome = await olivia.submits({ Reason: "because" });
    expect(outcome).toMatchObject({ acked: true });
    const [, interaction] = await gateway.handles(2);
    expect(interaction).toMatchObject({
      kind: "submission",
      callback: "reason",
      privateMetadata: "r-1",
      values: { why: "because" },
    });
    await gateway.slack.redeliver(outcome.deliveryId ?? "");
    await until(() => gateway.repeated.length).toBe(1);
    expect(gateway.handled).toHaveLength(2);
    expect(olivia.sees().modals).toEqual([]);
  });

  it("shows what is wrong on the field, isn't handled, and can be corrected and sent again", async () => {
    const { gateway } = shared;
    shared.handlers = {
      handleInteraction: show,
      submitBeforeAck: async (interaction) =>
        interaction.values["why"] === "x" ? { errors: { why: "Too short." } } : undefined,
    };
    const olivia = gateway.slack.person("olivia");
    await olivia.types("ops", "/vm ask");
    await olivia.until((seen) => seen.modals.length === 1);
    expect(await olivia.submits({ Reason: "x" })).toMatchObject({ errors: { why: "Too short." } });
    expect(gateway.handled).toHaveLength(1);
    expect((await olivia.submits({ Reason: "because it hangs" })).errors).toBeUndefined();
    await gateway.handles(2);
    expect(gateway.repeated).toEqual([]);
  });

  it("gets the answer of the first when it is submitted again while it is checked, refused or taken", async () => {
    const checks: ((said: SubmissionResult | undefined) => void)[] = [];
    const { gateway } = shared;
    shared.handlers = {
      handleInteraction: show,
      submitBeforeAck: () => new Promise((resolve) => checks.push(resolve)),
    };
    const olivia = gateway.slack.person("olivia");
    await olivia.types("ops", "/vm ask");
    await olivia.until((seen) => seen.modals.length === 1);
    // What is typed after both is stored in Redis, and acked; a copy is met on the way there
    const bothArrived = () => olivia.types("ops", "/vm list");
    const twice = () => [1, 2].map(() => olivia.submits({ Reason: "because" }));
    const refused = twice();
    await until(() => checks.length).toBe(1);
    await bothArrived();
    checks[0]?.({ errors: { why: "Too short." } });
    for (const outcome of await Promise.all(refused))
      expect(outcome).toMatchObject({ acked: true, errors: { why: "Too short." } });
    expect(olivia.sees().modals).toHaveLength(1);
    const taken = twice();
    await until(() => checks.length).toBe(2);
    await bothArrived();
    checks[1]?.(undefined);
    await Promise.all(taken);
    await gateway.handles(4);
    expect(gateway.handled.filter(({ kind }) => kind === "submission")).toHaveLength(1);
    expect(olivia.sees().modals).toEqual([]);
  });

  it.each([
    // Where the first gateway slept so long that it counted as dead, another one says it.
    [
      "for a field",
      { errors: { why: "Too short." } },
      /^(The form was not taken|Nothing was done): Too short\.$/,
    ],
    ["as a whole", new UserError("The VM is gone."), /^(Nothing was done: )?The VM is gone\.$/],
  ])(
    "tells privately what is refused %s after Slack gave up, though another gateway closed it as a copy",
    async (_what, refusal, says) => {
      const slow = Promise.withResolvers<void>();
      let [isSlow, isStored] = [false, false];
      const submit = async () => {
        if (refusal instanceof Error) throw refusal;
        return refusal;
      };
      await using first = await startGateway({
        handlers: { handleInteraction: show, submitBeforeAck: submit },
        onStored: async () => {
          if (!isSlow) return;
          isStored = true;
          await slow.promise;
        },
      });
      const firstUrl = first.slack.app.requestUrl;
      await using second = await startGateway({
        beside: first,
        handlers: { handleInteraction: show, submitBeforeAck: submit },
      });
      const secondUrl = second.slack.app.requestUrl;
      const olivia = first.slack.person("olivia");
      await olivia.types("ops", "/vm ask");
      await olivia.until((seen) => seen.modals.length === 1);
      isSlow = true;
      first.slack.app.requestUrl = firstUrl;
      const givenUp = olivia.submits({ Reason: "x" });
      await until(() => isStored);
      first.hangUp();
      expect(await givenUp).toMatchObject({ acked: false });
      first.slack.app.requestUrl = secondUrl;
      expect(await olivia.submits({ Reason: "x" })).toMatchObject({ acked: true });
      expect(olivia.sees().modals).toEqual([]);
      shortenDeadlines();
      slow.resolve();
      const told = () =>
        olivia.sees().channels.flatMap(({ messages }) => messages.map(({ text }) => text));
      await olivia.until(() => told().some((text) => says.test(text)));
      expect([...first.handled, ...second.handled].map(({ kind }) => kind)).toEqual(["command"]);
    },
  );

  it("stays open with a sentence when checking it fails, or takes longer than Slack waits", async () => {
    let isAway = true;
    const { gateway } = shared;
    shared.handlers = {
      // The deadline of the check alone: the interaction is stored by then
      onStored: async ({ kind }) => {
        if (kind === "submission" && !isAway) shortenDeadlines();
      },
      handleInteraction: show,
      submitBeforeAck: () =>
        isAway
          ? Promise.reject(new UserError("The service is away.", "Try again."))
          : new Promise(() => undefined),
    };
    const vera = gateway.slack.person("vera");
    await vera.types("ops", "/vm ask");
    await vera.until((seen) => seen.modals.length === 1);
    expect((await vera.submits({ Reason: "a" })).errors).toEqual({
      why: "The service is away. Try again.",
    });
    isAway = false;
    const late = await vera.submits({ Reason: "a" });
    expect(late.acked).toBe(true);
    expect(late.errors?.["why"]).toContain("takes too long");
    expect(gateway.handled).toHaveLength(1);
  });

  it("loads options while somebody types; what fails offers none", async () => {
    const { gateway } = shared;
    shared.handlers = {
      handleInteraction: show,
      suggest: async ({ typed, action }) => {
        if (typed === "crash") throw new Error("no");
        return [{ label: `${typed}-1 ${action}`, value: "vm-1", description: "RUNNING" }];
      },
    };
    const ada = gateway.slack.person("ada");
    await ada.types("ops", "/vm ask");
    await ada.until((seen) => seen.modals.length === 1);
    const found = await ada.suggests("VM", "web");
    expect(found).toMatchObject({
      acked: true,
      options: [{ text: { text: "web-1 pick-vm" }, value: "vm-1" }],
    });
    expect(await ada.suggests("VM", "crash")).toMatchObject({ acked: true, options: [] });
  });

  it("is acked when it is closed, and asks for nothing", async () => {
    const { gateway } = shared;
    shared.handlers = {
      handleInteraction: async (_ask, reply) =>
        void (await reply.open({ ...modal, notify_on_close: true })),
    };
    const amir = gateway.slack.person("amir");
    await amir.types("ops", "/vm ask");
    await amir.until((seen) => seen.modals.length === 1);
    expect(await amir.closes()).toMatchObject({ acked: true });
    expect(gateway.handled).toHaveLength(1);
  });
});

describe("a mention", () => {
  it("is a command in its thread, without the mention", async () => {
    const { gateway } = shared;
    const { slack } = gateway;
    const olivia = slack.person("olivia");
    const { ts } = await olivia.types("ops", "it hangs");
    await olivia.types("ops", "@gatehouse vm restart web-1", { threadTs: ts ?? "" });
    const [interaction] = await gateway.handles(1);
    expect(interaction).toMatchObject({
      kind: "mention",
      text: "vm restart web-1",
      threadTs: ts,
      channelId: "C01OPS",
      userId: "U0OLIVIA",
    });
    await olivia.types("ops", "@gatehouse vm list");
    const [, second] = await gateway.handles(2);
    // Outside a thread it is answered in the channel: a thread without replies shows nobody anything
    expect(second).not.toHaveProperty("threadTs");
    expect(slack.deliveries("event").every(({ attempts }) => attempts.length === 1)).toBe(true);
  });

  it("isn't run again when it is delivered again", async () => {
    const { gateway } = shared;
    await gateway.slack.person("olivia").types("ops", "@gatehouse vm list");
    await gateway.handles(1);
    const delivery = gateway.slack.deliveries("event").at(-1);
    if (delivery) await gateway.slack.redeliver(delivery);
    await until(() => gateway.repeated.length).toBe(1);
    expect(gateway.handled).toHaveLength(1);
  });
});

describe("what else Slack sends", () => {
  it("is acked: shortcuts, groups that changed, events nobody listens to", async () => {
    let changes = 0;
    const { gateway } = shared;
    shared.handlers = {
      peopleChanged: () => void (changes += 1),
    };
    const olivia = gateway.slack.person("olivia");
    expect(await olivia.picksShortcut("restart-vm")).toMatchObject({ acked: true });
    const interactions = await gateway.handles(1);
    expect(interactions).toMatchObject([
      { kind: "shortcut", callback: "restart-vm", channelId: "" },
    ]);
    const { ts } = await olivia.types("ops", "db-1 and web-2 look odd");
    await olivia.picksMessageShortcut("show-vms", ts ?? "");
    const [, named] = await gateway.handles(2);
    expect(named).toMatchObject({
      callback: "show-vms",
      messageText: "db-1 and web-2 look odd",
      channelId: "C01OPS",
    });
    expect(changes).toBe(0);
    const { workspace, app } = gateway.slack;
    const event = {
      type: "event_callback",
      team_id: workspace.team.id,
      api_app_id: app.appId,
      authorizations: [{ team_id: workspace.team.id }],
    };
    for (const type of ["channel_rename", "subteam_members_changed"]) {
      const body = JSON.stringify({ ...event, event_id: `Ev${type}`, event: { type } });
      const timestamp = Math.floor(Date.now() / 1000);
      const answer = await gateway.slack.sendRaw(body, {
        "content-type": "application/json",
        "x-slack-request-timestamp": String(timestamp),
        "x-slack-signature": gateway.slack.sign(timestamp, body),
      });
      expect(answer.status).toBe(200);
    }
    // Without waiting: a right that was taken is gone with the ack
    expect(changes).toBe(1);
  });

  it("is acked even when Bolt can't tell what it is", async () => {
    const { gateway } = shared;
    const { slack } = gateway;
    const odd = {
      type: "something_new",
      team: { id: slack.workspace.team.id },
      api_app_id: slack.app.appId,
    };
    const body = new URLSearchParams({ payload: JSON.stringify(odd) }).toString();
    const timestamp = Math.floor(Date.now() / 1000);
    const answer = await slack.sendRaw(body, {
      "content-type": "application/x-www-form-urlencoded",
      "x-slack-request-timestamp": String(timestamp),
      "x-slack-signature": slack.sign(timestamp, body),
    });
    expect(answer.status).toBe(200);
  });
});
