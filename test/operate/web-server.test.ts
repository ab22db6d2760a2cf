import { createHmac } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { stretchDeadlines } from "../../src/deadline.ts";
import { silentLog } from "../../src/log/log.ts";
import { createHttpReceiver } from "../../src/slack/receive/http-receiver.ts";
import { startWebServer } from "../../src/operate/web-server.ts";
import { until } from "../support/until.ts";

const secret = "test-signing-secret";
const body = "command=%2Fvm&text=list&user_id=U0OLIVIA&team_id=T01&trigger_id=1.2.3";

/** Slack's port as a gateway opens it, with an app that only counts what it is handed. */
async function slackPort() {
  let [taken, heads] = [0, 0];
  const http = createHttpReceiver({
    signingSecret: secret,
    log: silentLog(),
    async processEvent({ ack }) {
      taken += 1;
      await ack();
    },
  });
  const where = { port: 0, host: "127.0.0.1", log: silentLog() };
  const started = await startWebServer(where, (request, response) => {
    heads += 1;
    return http.route(request, response);
  });
  const get = (path: string) => fetch(`http://127.0.0.1:${started.port}${path}`);
  return {
    ...started,
    get,
    taken: () => taken,
    heads: () => heads,
    [Symbol.asyncDispose]: () => started.close(),
  };
}

function head(contentLength = body.length, signature?: string) {
  const time = String(Math.floor(Date.now() / 1000));
  const sign = createHmac("sha256", secret).update(`v0:${time}:${body}`).digest("hex");
  return [
    "POST /slack/events HTTP/1.1",
    "host: here",
    "content-type: application/x-www-form-urlencoded",
    `content-length: ${contentLength}`,
    `x-slack-request-timestamp: ${time}`,
    `x-slack-signature: v0=${signature ?? sign}`,
    "",
    "",
  ].join("\r\n");
}

/** All connect before any is waited for; each sends `parts`, the next one once the server has read the last, and has what came back. */
async function askAtOnce(
  port: number,
  count: number,
  parts: readonly string[],
  isRead: () => boolean = () => true,
) {
  const all = Array.from({ length: count }, () => {
    const socket = connect(port, "127.0.0.1");
    const asked = { socket, said: "", isCut: false, hasEnded: false };
    socket.on("data", (chunk: Buffer) => (asked.said += chunk.toString()));
    socket.on("error", () => (asked.isCut = true));
    socket.on("close", () => (asked.hasEnded = true));
    return asked;
  });
  for (const part of parts) {
    await Promise.all(all.map(async ({ socket }) => socket.connecting && once(socket, "connect")));
    for (const { socket } of all) socket.write(part);
    await until(isRead);
  }
  const withStatus = (status: number) =>
    all.filter(({ said }) => said.startsWith(`HTTP/1.1 ${status}`)).length;
  const answered = () => withStatus(200);
  const tooLarge = () => withStatus(413);
  const cut = () => all.filter(({ isCut }) => isCut).length;
  const end = () => {
    for (const { socket } of all) socket.destroy();
  };
  const ended = () => all.filter(({ hasEnded }) => hasEnded).length;
  return { answered, tooLarge, cut, ended, [Symbol.dispose]: end };
}

it("Slack's port knows Slack's path alone: no probe, no figure", async () => {
  await using slack = await slackPort();
  expect((await slack.get("/slack/events")).status).toBe(405);
  for (const path of ["/healthz", "/readyz", "/metrics", "/"]) {
    const answer = await slack.get(path);
    expect([answer.status, await answer.text()]).toEqual([404, ""]);
  }
});

it("a port on :: is open to IPv6 and to IPv4", async () => {
  const where = { port: 0, host: "::", log: silentLog() };
  const started = await startWebServer(where, (_request, response) => response.end("here"));
  const said = ["[::1]", "127.0.0.1"].map(async (host) =>
    (await fetch(`http://${host}:${started.port}/`)).text(),
  );
  expect(await Promise.all(said)).toEqual(["here", "here"]);
  await started.close();
});

describe("a connection that waits for its next request", () => {
  it("is kept for longer than a balancer keeps it", async () => {
    stretchDeadlines(1);
    await using slack = await slackPort();
    stretchDeadlines(30);
    const socket = connect(slack.port, "127.0.0.1");
    socket.write(`${head()}${body}`);
    const [answer] = (await once(socket, "data")) as [Buffer];
    expect(Number(/keep-alive: timeout=(\d+)/i.exec(answer.toString())?.[1])).toBeGreaterThan(60);
    socket.destroy();
  });

  it("outlives the time for headers, after which a silent one is cut", async () => {
    stretchDeadlines(0.1);
    await using slack = await slackPort();
    stretchDeadlines(30);
    using kept = await askAtOnce(slack.port, 1, [`${head()}${body}`]);
    await until(kept.answered).toBe(1);
    using silent = await askAtOnce(slack.port, 1, [""]);
    await until(silent.ended).toBe(1);
    expect(kept.ended()).toBe(0);
  });

  it("gives way where so many wait that nobody else would get in", async () => {
    await using slack = await slackPort();
    using idle = await askAtOnce(slack.port, 1_024, ["", `${head()}${body}`]);
    await until(idle.answered).toBe(1_024);
    using more = await askAtOnce(slack.port, 3, [`${head()}${body}`]);
    await until(more.answered).toBe(3);
    expect(idle.ended()).toBeGreaterThan(0);
  });
});

describe("a burst of new connections", () => {
  it("is served whole, though nothing is sent yet when the last comes", async () => {
    await using slack = await slackPort();
    // Almost as many as it takes at a time
    using burst = await askAtOnce(slack.port, 1_000, ["", `${head()}${body}`]);
    await until(burst.answered).toBe(1_000);
    expect([burst.cut(), slack.taken()]).toEqual([0, 1_000]);
  });

  it("is served whole where its bodies come later than its headers", async () => {
    await using slack = await slackPort();
    using burst = await askAtOnce(slack.port, 30, [head(), body], () => slack.heads() === 30);
    await until(burst.answered).toBe(30);
    expect([burst.cut(), slack.taken()]).toEqual([0, 30]);
  });
});

describe("what strangers hold", () => {
  it("is 1,024 connections at most: one more is cut, and taken once others have gone", async () => {
    await using slack = await slackPort();
    const silent = await askAtOnce(slack.port, 1_024, [""]);
    using more = await askAtOnce(slack.port, 1, [`${head()}${body}`]);
    await until(more.ended).toBe(1);
    expect([more.answered(), slack.taken(), silent.ended()]).toEqual([0, 0, 0]);
    silent[Symbol.dispose]();
    await until(async () => (await slack.get("/slack/events").catch(() => undefined))?.status).toBe(
      405,
    );
  });

  it("ends by itself where nothing is sent, or no body comes", async () => {
    // A hundredth of ten seconds, and of five for the headers. Neither ever comes
    stretchDeadlines(0.01);
    await using slack = await slackPort();
    stretchDeadlines(30);
    using silent = await askAtOnce(slack.port, 1, [""]);
    using slow = await askAtOnce(slack.port, 1, [head()]);
    await until(() => silent.ended() + slow.ended()).toBe(2);
    expect([silent.answered(), slow.answered(), slack.taken()]).toEqual([0, 0, 0]);
  });

  it("is 512 KB of a body at most: more is refused before it all came, and a genuine command beside it and beside slow ones is taken", async () => {
    await using slack = await slackPort();
    using slow = await askAtOnce(slack.port, 10, [head(500_000), "a".repeat(400_000)]);
    const limit = 512 * 1024;
    using large = await askAtOnce(slack.port, 3, [head(2 * limit), "a".repeat(limit + 1)]);
    using command = await askAtOnce(slack.port, 1, [`${head()}${body}`]);
    await until(command.answered).toBe(1);
    await until(large.tooLarge).toBe(3);
    expect([slow.ended(), slow.tooLarge(), slack.taken()]).toEqual([0, 0, 1]);
  });
});
