import type { RequestListener } from "node:http";
import { describe, expect, it } from "vitest";
import { silentLog } from "../../src/log/log.ts";
import { foreignness } from "../../src/slack/people/foreign-deliveries.ts";
import { readIdentity } from "../../src/slack/people/identity.ts";
import { createWeb } from "../../src/slack/web.ts";
import { listenLocally } from "./receive/local-server.ts";

async function slackThat(answers: RequestListener, timeoutMs = 60_000) {
  let requests = 0;
  const headers: string[] = [];
  const server = await listenLocally((request, response) => {
    requests += 1;
    headers.push(request.headers.authorization ?? "");
    answers(request, response);
  });
  const apiUrl = `${server.url}/api/`;
  const outcomes: string[] = [];
  const web = createWeb({
    token: "xoxb-1",
    apiUrl,
    log: silentLog(),
    timeoutMs,
    onCall: (method, outcome) => void outcomes.push(`${method} ${outcome}`),
  });
  return {
    web,
    apiUrl,
    headers,
    outcomes,
    requests: () => requests,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

const json =
  (status: number, body: unknown, headers = {}): RequestListener =>
  (_request, response) =>
    void response
      .writeHead(status, { "content-type": "application/json", ...headers })
      .end(typeof body === "string" ? body : JSON.stringify(body));

describe("a call to Slack", () => {
  it("tells what is known about it, is never repeated and never throws", async () => {
    const cases: [RequestListener, object][] = [
      [json(200, { ok: true, ts: "1.2" }), { ok: true, data: { ts: "1.2" } }],
      [
        json(200, {
          ok: false,
          error: "invalid_blocks",
          response_metadata: { messages: ["[ERROR] too long"] },
        }),
        { kind: "refused", error: "invalid_blocks", detail: ["[ERROR] too long"] },
      ],
      [json(429, "", { "retry-after": "7" }), { kind: "limited", retryAfterMs: 7000 }],
      [json(429, ""), { kind: "limited", retryAfterMs: 30_000 }],
      [json(200, { ok: false, error: "ratelimited" }), { kind: "limited", retryAfterMs: 30_000 }],
      [
        json(200, { ok: false, error: "message_limit_exceeded" }),
        { kind: "limited", retryAfterMs: 5_000 },
      ],
      [json(500, "oops"), { kind: "lost" }],
      [json(503, "<html>"), { kind: "lost" }],
      [json(404, "not here"), { kind: "refused", error: "http_404" }],
      [json(200, "<html>a proxy</html>"), { kind: "lost", reason: "no JSON in the answer" }],
      [json(200, { ok: false, error: "fatal_error" }), { kind: "lost" }],
      [json(302, "", { location: "http://127.0.0.1:1/" }), { kind: "lost" }],
      [(request) => request.socket.destroy(), { kind: "lost" }],
    ];
    const hangs: RequestListener = () => undefined;
    for (const [answers, expected] of [...cases, [hangs, { kind: "lost" }] as const]) {
      await using slack = await slackThat(answers, answers === hangs ? 200 : undefined);
      expect(await slack.web.call("chat.postMessage", { channel: "C1", text: "hi" })).toMatchObject(
        expected,
      );
      expect(slack.requests()).toBe(1);
    }
  });

  it("is known as such when it never left", async () => {
    const slack = await slackThat(json(200, { ok: true }));
    await slack[Symbol.asyncDispose]();
    expect(await slack.web.call("auth.test")).toMatchObject({ ok: false, kind: "unreachable" });
    const nowhere = createWeb({
      token: "x",
      apiUrl: "http://nowhere.invalid/api/",
      log: silentLog(),
      timeoutMs: 60_000,
    });
    expect(await nowhere.call("auth.test")).toMatchObject({ ok: false, kind: "unreachable" });
    expect(slack.outcomes).toEqual(["auth.test unreachable"]);
  });

  it("goes nowhere else, whatever the method is called, and keeps each client's own token", async () => {
    await using one = await slackThat(json(200, { ok: true }));
    await using two = await slackThat(json(200, { ok: true }));
    const second = createWeb({ token: "xoxb-2", apiUrl: one.apiUrl, log: silentLog() });
    await one.web.call(`${two.apiUrl}auth.test`);
    await second.call("auth.test");
    await one.web.call("auth.test");
    expect(two.requests()).toBe(0);
    expect(one.headers).toEqual(["Bearer xoxb-1", "Bearer xoxb-2", "Bearer xoxb-1"]);
  });
});

describe("who we are in Slack", () => {
  it("is read once, with words for what is wrong", async () => {
    const ids = { user_id: "U1", bot_id: "B1", team_id: "T1", enterprise_id: "E1" };
    const good = { ok: true, ...ids, team: "Acme" };
    await using slack = await slackThat(json(200, good));
    expect(await readIdentity(slack.web, { appToken: "xapp-1-A0123-456-abc" })).toEqual({
      botUserId: "U1",
      botId: "B1",
      teamId: "T1",
      teamName: "Acme",
      enterpriseId: "E1",
      appId: "A0123",
    });
    await using refusing = await slackThat(json(200, { ok: false, error: "invalid_auth" }));
    expect(await readIdentity(refusing.web)).toEqual({
      problem: "Slack rejected the bot token (invalid_auth)",
      retry: false,
    });
    await using user = await slackThat(json(200, { ok: true, user_id: "U1", team_id: "T1" }));
    expect(await readIdentity(user.web)).toMatchObject({
      problem: "this token is not a bot's (auth.test names no bot_id)",
      retry: false,
    });
    await using down = await slackThat(json(503, ""));
    expect(await readIdentity(down.web)).toMatchObject({ retry: true });
  });

  it("names our app where no token does, so that over HTTP other apps are refused too", async () => {
    const both = { ok: true, user_id: "U1", bot_id: "B1", team_id: "T1", bot: { app_id: "A0999" } };
    await using slack = await slackThat(json(200, both));
    expect(await readIdentity(slack.web)).toMatchObject({ appId: "A0999" });
    await using silent = await slackThat(json(200, { ...both, bot: undefined }));
    expect(await readIdentity(silent.web)).not.toHaveProperty("appId");
  });

  it("decides which deliveries are for us", () => {
    const us = { botId: "B1", botUserId: "U1", teamId: "T1", enterpriseId: "E1", appId: "A1" };
    expect(foreignness({ team_id: "T1", api_app_id: "A1" }, us)).toBeUndefined();
    expect(foreignness({ team: { id: "T1" } }, us)).toBeUndefined();
    expect(foreignness({ team: null, enterprise: { id: "E1" } }, us)).toBeUndefined();
    expect(
      foreignness({ team: { id: "T9" }, view: { app_installed_team_id: "T1" } }, us),
    ).toBeUndefined();
    // An event of a shared channel: the other side's team, our installation.
    expect(
      foreignness({ team_id: "T9", authorizations: [{ team_id: "T1", enterprise_id: null }] }, us),
    ).toBeUndefined();
    expect(
      foreignness({ team_id: "T1", authorizations: [{ team_id: "T9", enterprise_id: null }] }, us),
    ).toBe("team");
    expect(foreignness({ team_id: "T9" }, us)).toBe("team");
    expect(foreignness({ team_id: "T1", api_app_id: "A9" }, us)).toBe("app");
    for (const nothing of [undefined, null, "T1", [], {}])
      expect(foreignness(nothing, us)).toBe("team");
    expect(foreignness({ enterprise: { id: "E9" } }, { ...us, enterpriseId: "" })).toBe("team");
  });
});
