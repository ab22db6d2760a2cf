import { createHmac } from "node:crypto";
import { once } from "node:events";
import { type Socket, connect } from "node:net";
import { describe, expect, it } from "vitest";
import { silentLog } from "../../src/log/log.ts";
import { createHttpReceiver } from "../../src/slack/receive/http-receiver.ts";
import { startWebServer } from "../../src/operate/web-server.ts";
import { until } from "../support/until.ts";

const secret = "test-signing-secret";
const body = "command=%2Fvm&text=list&user_id=U0OLIVIA&team_id=T01&trigger_id=1.2.3";

/** Slack's port as a gateway opens it, with an app that only counts what it is handed. */
async function slackPort() {
  let taken = 0;
  const http = createHttpReceiver({
    signingSecret: secret,
    log: silentLog(),
    async processEvent({ ack }) {
      taken += 1;
      await ack();
    },
  });
  const where = { port: 0, host: "127.0.0.1", log: silentLog() };
  const started = await startWebServer(where, http.route);
  const get = (path: string) => fetch(`http://127.0.0.1:${started.port}${path}`);
  return { ...started, get, taken: () => taken, [Symbol.asyncDispose]: () => started.close() };
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

/** All connect before any is waited for; each sends `parts`, with a pause between, and has what came back. */
async function askAtOnce(port: number, count: number, parts: readonly string[]) {
  const all = Array.from({ length: count }, () => {
    const socket = connect(port, "127.0.0.1");
    const asked = { socket, said: "", isCut: false };
    socket.on("data", (chunk: Buffer) => (asked.said += chunk.toString()));
    socket.on("error", () => (asked.isCut = true));
    return asked;
  });
  for (const part of parts) {
    await Promise.all(all.map(async ({ socket }) => socket.connecting && once(socket, "connect")));
    for (const { socket } of all) socket.write(part);
    // The last of these is heard once the server has read all that came before it
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const answered = () => all.filter(({ said }) => said.startsWith("HTTP/1.1 200")).length;
  const cut = () => all.filter(({ isCut }) => isCut).length;
  const end = () => {
    for (const { socket } of all) socket.destroy();
  };
  return { answered, cut, [Symbol.dispose]: end };
}

it("Slack's port knows Slack's path alone: no probe, no figure", async () => {
  await using slack = await slackPort();
  expect((await slack.get("/slack/events")).status).toBe(405);
  for (const path of ["/healthz", "/readyz", "/metrics", "/"]) {
    const answer = await slack.get(path);
    expect([answer.status, await answer.text()]).toEqual([404, ""]);
  }
});

describe("a burst of new connections", () => {
  it.each([300, 1_000])(
    "of %i is served whole, though nothing is sent yet when the last comes",
    async (count) => {
      await using slack = await slackPort();
      using burst = await askAtOnce(slack.port, count, ["", `${head()}${body}`]);
      await until(burst.answered).toBe(count);
      expect([burst.cut(), slack.taken()]).toEqual([0, count]);
    },
  );

  it("of 300 is served whole where its bodies come later than its headers", async () => {
    await using slack = await slackPort();
    using burst = await askAtOnce(slack.port, 300, [head(), body]);
    await until(burst.answered).toBe(300);
    expect(burst.cut()).toBe(0);
  });
});

describe("what strangers hold", () => {
  it("of silent connections and of bodies that don't come ends after five and ten seconds", async () => {
    await using slack = await slackPort();
    using silent = await askAtOnce(slack.port, 512, [""]);
    using slow = await askAtOnce(slack.port, 512, [head()]);
    // Node.js takes no more than 1,024
    using more = await askAtOnce(slack.port, 20, [`${head()}${body}`]);
    expect(more.answered()).toBe(0);
    // Those that never sent anything have made room
    await until(async () => (await slack.get("/slack/events").catch(() => undefined))?.status).toBe(
      405,
    );
    expect([silent.answered(), slow.answered()]).toEqual([0, 0]);
  });

  it.each([1_000_000, 500_000])(
    "of 500 slow bodies of %i bytes stays bounded, and a genuine command in between is taken",
    async (size) => {
      await using slack = await slackPort();
      const flood: Socket[] = [];
      const allButOne = Buffer.alloc(size - 1, "a");
      const command = async () => {
        using one = await askAtOnce(slack.port, 1, [`${head()}${body}`]);
        await until(one.answered).toBe(1);
      };
      const before = process.memoryUsage().rss;
      try {
        for (let n = 0; n < 500; n += 1) {
          if (n === 250) await command();
          const socket = connect(slack.port, "127.0.0.1");
          flood.push(socket);
          socket.on("error", () => undefined);
          await once(socket, "connect");
          socket.write(head(size, "0".repeat(64)));
          socket.write(allButOne);
        }
        await command();
        expect((process.memoryUsage().rss - before) / 1024 / 1024).toBeLessThan(256);
      } finally {
        for (const socket of flood) socket.destroy();
      }
      expect(slack.taken()).toBe(2);
    },
  );
});
