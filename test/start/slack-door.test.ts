import { createHmac } from "node:crypto";
import { once } from "node:events";
import { type Socket, connect } from "node:net";
import { describe, expect, it } from "vitest";
import { silentLog } from "../../src/log/log.ts";
import { createSlackHttp } from "../../src/slack/receive/http.ts";
import { startWebServer } from "../../src/start/web-server.ts";

async function api() {
  const where = { port: 0, host: "127.0.0.1", log: silentLog() };
  const started = await startWebServer(where, (request, response) => {
    if (request.url !== "/slack/events") return false;
    response.end("taken");
    return true;
  });
  const get = (path: string) => fetch(`http://127.0.0.1:${started.port}${path}`);
  return { ...started, get, [Symbol.asyncDispose]: () => started.close() };
}

it("Slack's port knows Slack's path alone: no probe, no figure", async () => {
  await using slack = await api();
  expect(await (await slack.get("/slack/events")).text()).toBe("taken");
  for (const path of ["/healthz", "/readyz", "/metrics", "/"]) {
    const answer = await slack.get(path);
    expect([answer.status, await answer.text()]).toEqual([404, ""]);
  }
});

it("is not shut by 600 connections that never ask for anything", async () => {
  await using slack = await api();
  const silent: Socket[] = [];
  let cut = 0;
  try {
    for (let n = 0; n < 600; n += 1) {
      const socket = connect(slack.port, "127.0.0.1");
      socket.on("error", () => undefined);
      socket.on("close", () => (cut += 1));
      silent.push(socket);
      await once(socket, "connect");
      socket.write("POST /slack/events HTTP/1.1\r\n");
    }
    expect(await (await slack.get("/slack/events")).text()).toBe("taken");
    await expect.poll(() => cut).toBeGreaterThanOrEqual(344);
  } finally {
    for (const socket of silent) socket.destroy();
  }
});

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

describe("a burst of new connections", () => {
  const secret = "test-signing-secret";
  const body = "command=%2Fvm&text=list&user_id=U0OLIVIA&team_id=T01&trigger_id=1.2.3";

  async function slackDoor() {
    let taken = 0;
    const http = createSlackHttp({
      signingSecret: secret,
      log: silentLog(),
      take: async ({ ack }) => {
        taken += 1;
        await ack();
      },
    });
    const where = { port: 0, host: "127.0.0.1", log: silentLog() };
    const started = await startWebServer(where, http.route);
    return { ...started, taken: () => taken, [Symbol.asyncDispose]: () => started.close() };
  }

  function head() {
    const time = String(Math.floor(Date.now() / 1000));
    const sign = createHmac("sha256", secret).update(`v0:${time}:${body}`).digest("hex");
    return [
      "POST /slack/events HTTP/1.1",
      "host: here",
      "content-type: application/x-www-form-urlencoded",
      `content-length: ${body.length}`,
      `x-slack-request-timestamp: ${time}`,
      `x-slack-signature: v0=${sign}`,
      "",
      "",
    ].join("\r\n");
  }

  it.each([300, 1_000])(
    "of %i is served whole, though nothing is sent yet when the last comes",
    async (count) => {
      await using slack = await slackDoor();
      using burst = await askAtOnce(slack.port, count, ["", `${head()}${body}`]);
      await expect.poll(burst.answered, { timeout: 10_000 }).toBe(count);
      expect([burst.cut(), slack.taken()]).toEqual([0, count]);
    },
  );

  it("of 300 is served whole where its bodies come later than its headers", async () => {
    await using slack = await slackDoor();
    using burst = await askAtOnce(slack.port, 300, [head(), body]);
    await expect.poll(burst.answered, { timeout: 10_000 }).toBe(300);
    expect(burst.cut()).toBe(0);
  });

  it("passes 1,024 silent ones, and 1,024 whose bodies don't come", async () => {
    await using slack = await slackDoor();
    for (const parts of [[""], [head()]]) {
      using silent = await askAtOnce(slack.port, 1_024, parts);
      using burst = await askAtOnce(slack.port, 20, [`${head()}${body}`]);
      await expect.poll(burst.answered, { timeout: 10_000 }).toBe(20);
      expect(silent.answered()).toBe(0);
    }
  });
});
