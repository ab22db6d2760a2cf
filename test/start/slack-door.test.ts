import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect, it } from "vitest";
import { silentLog } from "../../src/log/log.ts";
import { startWebServer } from "../../src/start/worker.ts";

async function door() {
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
  await using slack = await door();
  expect(await (await slack.get("/slack/events")).text()).toBe("taken");
  for (const path of ["/healthz", "/readyz", "/metrics", "/"]) {
    const answer = await slack.get(path);
    expect([answer.status, await answer.text()]).toEqual([404, ""]);
  }
});

it("is not shut by 600 connections that never ask for anything", async () => {
  await using slack = await door();
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
