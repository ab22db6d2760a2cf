import { describe, expect, it } from "vitest";
import { issueResponseUrl } from "../../../sandbox/slack/state/response-urls.ts";
import { startSlack } from "./start-slack.ts";
import { callApi } from "./call-api.ts";

async function world() {
  let clock = 1_795_000_000_000;
  const slack = await startSlack({ rateLimits: "off", now: () => clock });
  return {
    slack,
    issue: (more: { channelId?: string; source?: { ts: string; ephemeral: boolean } } = {}) =>
      issueResponseUrl(slack.workspace, { userId: "U0OLIVIA", channelId: "C04RANDOM", ...more }),
    wait: (ms: number) => {
      clock += ms;
    },
    [Symbol.asyncDispose]: () => slack.close(),
  };
}

async function respond(url: string, body: object) {
  const response = await fetch(url, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "content-type": "application/json" },
  });
  return `${response.status} ${await response.text()}`;
}

describe("a response URL", () => {
  it("works five times, where the bot is no member", async () => {
    await using here = await world();
    const url = here.issue();
    for (let i = 1; i <= 5; i++) expect(await respond(url, { text: `${i}` })).toBe("200 ok");
    expect(await respond(url, { text: "6" })).toBe("404 used_url");
    expect(here.slack.person("olivia").seesChannel("random").messages).toHaveLength(5);
    expect(here.slack.person("vera").seesChannel("random").messages).toHaveLength(0);
  });

  it("expires after 30 minutes", async () => {
    await using here = await world();
    const url = here.issue();
    here.wait(30 * 60_000 + 1);
    expect(await respond(url, { text: "late" })).toBe("404 expired_url");
  });

  it("refuses what is no message", async () => {
    await using here = await world();
    expect(await respond(here.issue(), {})).toBe("400 no_text");
    expect(await respond(here.issue(), { blocks: [{ type: "nonsense" }] })).toBe(
      "400 invalid_blocks",
    );
    here.slack.edit.archive("random");
    expect(await respond(here.issue(), { text: "x" })).toBe("410 channel_is_archived");
    expect(await respond(`${here.slack.url}/actions/T01CONF/guessed`, { text: "x" })).toBe(
      "404 no_active_hooks",
    );
  });

  it("replaces and deletes the message it came from, ephemeral or not", async () => {
    await using here = await world();
    const args = { channel: "C01OPS", text: "one" };
    const { message_ts } = await callApi(here.slack, "chat.postEphemeral", {
      ...args,
      user: "U0OLIVIA",
    });
    const { ts } = await callApi(here.slack, "chat.postMessage", args);
    const [whisper, open] = [message_ts, ts].map((at) =>
      here.issue({ channelId: "C01OPS", source: { ts: String(at), ephemeral: at === message_ts } }),
    );
    const shown = () =>
      here.slack
        .person("olivia")
        .seesChannel("ops")
        .messages.map(({ text, ephemeral }) => `${text} ${ephemeral}`);
    await respond(whisper ?? "", { replace_original: true, text: "two" });
    await respond(open ?? "", { replace_original: true, text: "three" });
    expect(shown()).toEqual(["two true", "three false"]);
    await respond(whisper ?? "", { delete_original: true });
    await respond(open ?? "", { delete_original: true });
    expect(shown()).toEqual([]);
  });

  it("has nothing to replace after a slash command: it posts", async () => {
    await using here = await world();
    const url = here.issue();
    await respond(url, { text: "one" });
    await respond(url, { text: "two", replace_original: true });
    expect(
      here.slack
        .person("olivia")
        .seesChannel("random")
        .messages.map(({ text }) => text),
    ).toEqual(["one", "two"]);
  });
});
