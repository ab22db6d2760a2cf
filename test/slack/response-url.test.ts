import { describe, expect, it } from "vitest";
import { createLog } from "../../src/log/log.ts";
import { sentence } from "../../src/messages/card.ts";
import { Markdown } from "../../src/messages/markdown.ts";
import type { WebData } from "../../src/slack/json.ts";
import type { Interaction, InteractionBase } from "../../src/slack/receive/interaction.ts";
import { createReply } from "../../src/slack/receive/reply.ts";
import { isResponseUrl } from "../../src/slack/response-url.ts";
import type { WebAnswer } from "../../src/slack/web-answer.ts";
import type { Web } from "../../src/slack/web.ts";
import { listenLocally } from "./receive/local-server.ts";

const url = "https://hooks.slack.com/commands/T01/123/secret";
const words = sentence(new Markdown("hello"));

describe("a response URL", () => {
  it("is one of Slack's own addresses, or those of the server that speaks for it", () => {
    const api = "http://127.0.0.1:4000/api/";
    const elsewhere = [
      "http://hooks.slack.com/x",
      "https://hooks.slack.com.evil.example/x",
      "https://hooks.slack.com:8443/x",
      "https://user:pass@hooks.slack.com/x",
      "https://evil.example/hooks.slack.com",
      "http://169.254.169.254/latest/meta-data",
      "http://127.0.0.1:4001/x",
      "https://127.0.0.1:4000/x",
      "file:///etc/passwd",
      "javascript:alert(1)",
      "",
    ];
    for (const one of elsewhere) {
      expect([one, isResponseUrl(one, api)]).toEqual([one, false]);
    }
    expect(isResponseUrl("http://127.0.0.1:4000/actions/1", api)).toBe(true);
    expect(isResponseUrl("http://127.0.0.1:4000/actions/1")).toBe(false);
    expect(isResponseUrl(url, api)).toBe(true);
    expect(isResponseUrl("https://hooks.slack-gov.com/x", "https://slack-gov.com/api/")).toBe(true);
  });
});

const asked = {
  id: "command:1",
  at: 1000,
  userId: "U1",
  teamId: "T1",
  channelId: "C1",
  triggerId: "1.2",
};
const command = (base: InteractionBase): Interaction => ({
  ...base,
  kind: "command",
  text: "vm list",
});
const press =
  (ephemeral: boolean) =>
  (base: InteractionBase): Interaction => ({
    ...base,
    kind: "button",
    action: "a",
    value: "",
    ephemeral,
  });

/**
 * Creates a reply with a response URL that answers as a test says, and a Web that records calls.
 */
async function startReply(made: (interaction: InteractionBase) => Interaction = command) {
  const posts: unknown[] = [];
  const calls: [string, WebData][] = [];
  const lines: string[] = [];
  const unheard: string[] = [];
  let isRedisAway = false;
  let answer = { status: 200, body: "ok", location: "" };
  let webAnswer: WebAnswer = { ok: true, data: {} };
  const server = await listenLocally((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      posts.push(JSON.parse(body));
      response
        .writeHead(answer.status, answer.location === "" ? {} : { location: answer.location })
        .end(answer.body);
    });
  });
  const host = server.url;
  const web: Web = { call: async (method, args = {}) => (calls.push([method, args]), webAnswer) };
  const interaction = made({ ...asked, responseUrl: `${host}/actions/secret-key` });
  let time = 1000;
  const reply = createReply({
    web,
    interaction,
    apiUrl: `${host}/api/`,
    log: createLog({ level: "debug", write: (line) => void lines.push(line) }),
    now: () => time,
    async onLostReply(told) {
      unheard.push(told.id);
      if (isRedisAway) throw new Error("Connection is closed.");
    },
  });
  return {
    reply,
    unheard,
    redisGoes: () => void (isRedisAway = true),
    posts,
    calls,
    lines,
    urlSays: (status: number, body = "", location = "") =>
      void (answer = { status, body, location }),
    webSays: (said: WebAnswer) => void (webAnswer = said),
    later: (ms: number) => void (time += ms),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

describe("an answer to whoever asked", () => {
  it("goes to the response URL, unfurls nothing, replaces nothing", async () => {
    await using slack = await startReply();
    await slack.reply.privately(words);
    expect(slack.posts).toEqual([
      {
        response_type: "ephemeral",
        replace_original: false,
        text: "hello",
        blocks: words.blocks,
        unfurl_links: false,
        unfurl_media: false,
      },
    ]);
    expect(slack.calls).toEqual([]);
  });

  it("takes another way after five uses, after half an hour, and when the address says no", async () => {
    await using used = await startReply();
    for (let count = 0; count < 6; count += 1) await used.reply.privately(words);
    expect([used.posts.length, used.calls.map(([method]) => method)]).toEqual([
      5,
      ["chat.postEphemeral"],
    ]);
    await using old = await startReply();
    old.later(30 * 60_000);
    await old.reply.privately(words);
    expect([old.posts.length, old.calls.length]).toEqual([0, 1]);
    for (const [status, body] of [
      [404, "expired_url"],
      [404, "used_url"],
      [500, ""],
      [200, "no_original"],
      [200, '{"ok":false,"error":"invalid_blocks"}'],
    ] as const) {
      await using no = await startReply();
      no.urlSays(status, body);
      await no.reply.privately(words);
      expect([no.posts.length, no.calls.map(([method]) => method)]).toEqual([
        1,
        ["chat.postEphemeral"],
      ]);
      expect(no.lines.join("")).not.toContain("secret-key");
    }
  });

  it("never follows a redirect, and never posts to a foreign address", async () => {
    await using slack = await startReply();
    slack.urlSays(307, "", "http://169.254.169.254/");
    await slack.reply.privately(words);
    expect(slack.calls).toHaveLength(1);
    await using foreign = await startReply((base) =>
      command({ ...base, responseUrl: "http://169.254.169.254/latest" }),
    );
    await foreign.reply.privately(words);
    expect(foreign.calls.map(([method]) => method)).toEqual(["chat.postEphemeral"]);
  });

  it("is a direct message where the bot can't post, or where there is no channel", async () => {
    await using closed = await startReply((base) => command({ ...base, threadTs: "1.5" }));
    closed.urlSays(404);
    closed.webSays({ ok: false, kind: "refused", error: "channel_not_found", detail: [] });
    await closed.reply.privately(words);
    expect(closed.calls).toMatchObject([
      ["chat.postEphemeral", { channel: "C1", user: "U1", thread_ts: "1.5" }],
      ["chat.postMessage", { channel: "U1", unfurl_links: false, unfurl_media: false }],
    ]);
    await using nowhere = await startReply((base) => command({ ...base, channelId: "" }));
    nowhere.urlSays(404);
    await nowhere.reply.privately(words);
    expect(nowhere.calls.map(([method]) => method)).toEqual(["chat.postMessage"]);
    await using lost = await startReply();
    lost.urlSays(404);
    lost.webSays({ ok: false, kind: "lost", reason: "timeout" });
    await lost.reply.privately(words);
    expect(lost.calls).toHaveLength(1);
  });

  it("is told later when Slack took it nowhere; one that was refused everywhere could never be", async () => {
    for (const away of [
      { ok: false, kind: "lost", reason: "timeout" },
      { ok: false, kind: "unreachable", reason: "ECONNREFUSED" },
      { ok: false, kind: "limited", retryAfterMs: 1000 },
    ] as const) {
      for (const channelId of ["C1", ""]) {
        await using gone = await startReply((base) => command({ ...base, channelId }));
        gone.urlSays(500);
        gone.webSays(away);
        await gone.reply.privately(words);
        expect([away.kind, channelId, gone.unheard]).toEqual([away.kind, channelId, ["command:1"]]);
      }
    }
    await using alone = await startReply();
    alone.urlSays(500);
    alone.webSays({ ok: false, kind: "unreachable", reason: "ECONNREFUSED" });
    alone.redisGoes();
    await alone.reply.privately(words);
    expect(alone.lines.join("")).toContain("slack.not-told-later");
    await using refused = await startReply();
    refused.urlSays(404);
    refused.webSays({ ok: false, kind: "refused", error: "channel_not_found", detail: [] });
    await refused.reply.privately(words);
    await using heard = await startReply();
    await heard.reply.privately(words);
    expect([...refused.unheard, ...heard.unheard]).toEqual([]);
  });

  it("replaces only an ephemeral message of its own", async () => {
    await using own = await startReply(press(true));
    await own.reply.instead(words);
    expect(own.posts).toMatchObject([{ replace_original: true }]);
    await using shared = await startReply(press(false));
    await shared.reply.instead(words);
    expect(shared.posts).toMatchObject([{ replace_original: false }]);
  });

  it("opens a modal with the trigger, over another one with push, and says when that failed", async () => {
    await using slack = await startReply();
    const view = {
      type: "modal" as const,
      title: { type: "plain_text" as const, text: "x" },
      blocks: [],
    };
    slack.webSays({ ok: true, data: { view: { id: "V1", hash: "h1" } } });
    expect(await slack.reply.open(view)).toBe("V1");
    await slack.reply.update("V1", view, "h1");
    slack.webSays({ ok: false, kind: "refused", error: "expired_trigger_id", detail: [] });
    expect(await slack.reply.open(view)).toBeUndefined();
    await slack.reply.update("V1", view);
    expect(slack.calls).toEqual([
      ["views.open", { view, trigger_id: expect.any(String) }],
      ["views.update", { view, view_id: "V1", hash: "h1" }],
      ["views.open", { view, trigger_id: expect.any(String) }],
      ["views.update", { view, view_id: "V1" }],
    ]);
    await using modal = await startReply((base) => ({
      ...base,
      kind: "button",
      action: "a",
      value: "",
      ephemeral: false,
      viewId: "V1",
      view: { type: "modal", callback: "", hash: "", privateMetadata: "", values: {} },
    }));
    await modal.reply.open(view);
    expect(modal.calls.map(([method]) => method)).toEqual(["views.push"]);
  });
});
