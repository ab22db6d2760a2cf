import type { SandboxSlackOptions } from "../../../sandbox/slack/index.ts";
import { describe, expect, it } from "vitest";
import { phoneText } from "../../../sandbox/slack/acts/typing.ts";
import { startSlack } from "./start-slack.ts";
import { callApi } from "./call-api.ts";

const start = (options: SandboxSlackOptions = {}) => startSlack({ rateLimits: "off", ...options });

const button = (value: string) => ({
  type: "button",
  text: { type: "plain_text", text: "Restart" },
  action_id: `restart-${value}`,
  value,
});

describe("people in the workspace", () => {
  it("see the channels they may see", async () => {
    await using slack = await start();
    const names = (who: string) =>
      slack
        .seenBy(who)
        .channels.filter(({ kind }) => kind !== "direct")
        .map(({ name }) => name);
    expect(names("olivia")).toEqual(["ops", "status", "audit", "random", "secret", "vendor"]);
    expect(names("gina")).toEqual(["ops"]);
    expect(names("stan")).toEqual(["vendor"]);
    expect(slack.seenBy("vera").channels.find(({ name }) => name === "audit")).toMatchObject({
      member: false,
      botIsMember: true,
    });
  });

  it("can only do what is there to be done", async () => {
    await using slack = await start();
    const [vera, stan] = [slack.person("vera"), slack.person("stan")];
    await expect(vera.types("audit", "hi")).rejects.toThrow("vera isn't in #audit");
    await expect(stan.types("ops", "hi")).rejects.toThrow("stan can't see ops");
    await expect(slack.person("dora").types("ops", "hi")).rejects.toThrow("dora is deactivated");
    await expect(vera.submits()).rejects.toThrow("vera has no modal open");
    await expect(vera.types("nowhere", "hi")).rejects.toThrow("There is no channel nowhere");
    expect(() => slack.person("nobody")).toThrow("Nobody here is called nobody");
    expect(await vera.types("ops", "/nonsense")).toMatchObject({ error: "invalid_command" });
    const { ts = "" } = await vera.types("ops", "hello");
    expect(await vera.types("ops", "/vm list", { threadTs: ts })).toMatchObject({
      acked: false,
      error: "not_supported_in_threads",
    });
    expect(slack.deliveries()).toEqual([]);
  });

  it("are notified of mentions once a message, and never by an edit", async () => {
    await using slack = await start();
    const say = (text: string, more = {}) =>
      callApi(slack, "chat.postMessage", { channel: "C01OPS", text, ...more });
    const { ts } = await say("<@U0OLIVIA> and <@U0OLIVIA>", {
      blocks: [{ type: "section", text: { type: "mrkdwn", text: "<@U0OLIVIA>" } }],
    });
    await callApi(slack, "chat.update", { channel: "C01OPS", ts, text: "<@U0OLIVIA> <!channel>" });
    await say("&lt;!channel&gt; &lt;@U0OLIVIA&gt;", {
      blocks: [{ type: "section", text: { type: "plain_text", text: "<!channel>" } }],
    });
    expect(slack.person("olivia").mentions()).toMatchObject([{ because: "mention", ts }]);
    await say("<!subteam^S01ONCALL>");
    await say("<!here>");
    expect(
      slack
        .person("olivia")
        .mentions()
        .map(({ because }) => because),
    ).toEqual(["mention", "group", "everyone"]);
    expect(slack.person("vera").mentions()).toHaveLength(1);
  });

  it("find buttons by label or id, newest first, and tell equal ones apart by value", async () => {
    await using slack = await start();
    const { ts } = await callApi(slack, "chat.postMessage", {
      channel: "C01OPS",
      text: "a",
      blocks: [{ type: "actions", elements: [button("1"), button("2")] }],
    });
    await callApi(slack, "chat.postMessage", {
      channel: "C02STATUS",
      text: "b",
      blocks: [{ type: "actions", elements: [button("3")] }],
    });
    const vera = slack.person("vera");
    await vera.presses("Restart");
    await vera.presses("Restart", { value: "2" });
    await vera.presses("restart-1");
    await vera.presses("Restart", { channel: "ops" });
    await vera.presses("Restart", { in: String(ts), value: "2" });
    const values = slack
      .deliveries()
      .map(({ payload }) => JSON.stringify(payload["actions"]).match(/"value":"(\d)"/)?.[1]);
    expect(values).toEqual(["3", "2", "1", "1", "2"]);
    await expect(vera.presses("Restart", { in: "latest", value: "2" })).rejects.toThrow(
      "vera sees no Restart in latest. There is Restart.",
    );
    expect(vera.sees().toasts.at(-1)).toMatchObject({
      error: "dispatch_failed",
      channelId: "C01OPS",
    });
  });

  it("wait for what they expect to see, and say what they saw instead", async () => {
    const patience = { stillMs: 60_000, longestMs: 60_000 };
    await using slack = await start({ waiting: { patience, explain: () => "\nNothing else." } });
    const vera = slack.person("vera");
    const waiting = vera.until(({ inbox }) => inbox.length > 0);
    await callApi(slack, "chat.postMessage", { channel: "C01OPS", text: "for <@U0VERA>" });
    expect((await waiting).inbox).toHaveLength(1);
    patience.stillMs = 20;
    await expect(vera.until(({ modals }) => modals.length > 0)).rejects.toThrow(
      /^Waited [\d.]+ s: vera wanted .*\n#ops\n {2}gatehouse: for <@U0VERA>[^]*\nNothing else\.$/,
    );
  });

  it("type curly quotes and long dashes on phones", () => {
    expect(phoneText(`vm resize "web 1" --cpu 2 don't`)).toBe("vm resize “web 1” —cpu 2 don’t");
  });
});
