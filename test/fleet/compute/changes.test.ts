import { connect, createServer, type Socket } from "node:net";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import type { Compute } from "../../../src/fleet/compute/compute.ts";
import type { Effect } from "../../../sandbox/compute/weather.ts";
import { startSandboxCompute } from "../../../sandbox/compute/start-sandbox-compute.ts";
import { answering, clientOf, failureOf, says } from "./answering.ts";

const restart = (compute: Compute) => compute.vms.restart("vm-payments-web-1");

describe("a call that changes something", () => {
  const statuses: [status: number, kind: string][] = [
    [301, "unclear"],
    [307, "unclear"],
    [400, "refused"],
    [401, "refused"],
    [403, "refused"],
    [404, "not-found"],
    [405, "refused"],
    [408, "unclear"],
    [409, "conflict"],
    [410, "not-found"],
    [418, "unclear"],
    [422, "refused"],
    [425, "unclear"],
    [429, "busy"],
    [499, "unclear"],
    [500, "unclear"],
    [501, "unclear"],
    [502, "unclear"],
    [503, "unclear"],
    [504, "unclear"],
    [599, "unclear"],
  ];

  it.each(statuses)("answered with %i is %s, and is sent once", async (status, kind) => {
    await using server = await answering(says({ error: "no" }, status));
    await using compute = clientOf(server.url);
    const error = await failureOf(restart(compute));
    expect(error).toMatchObject({ kind, status, endpoint: "POST /v1/vms/{vm_id}/restart" });
    expect(server.asked).toHaveLength(1);
  });

  it("is not sent on a connection that stands too late: no byte leaves, and that is known", async () => {
    await using server = await answering(says({}));
    await using compute = clientOf(server.url);
    let asked = 0;
    const late = compute.onlyWhile(async () => {
      asked += 1;
      return false;
    });
    expect(await failureOf(restart(late))).toMatchObject({ kind: "unreachable" });
    expect(asked).toBe(1);
    const unsure = compute.onlyWhile(() => Promise.reject(new Error("Redis is away")));
    expect(await failureOf(restart(unsure))).toMatchObject({ kind: "unreachable" });
    expect(server.asked).toEqual([]);
    await restart(compute.onlyWhile(async () => true));
    expect(server.asked).toHaveLength(1);
  });

  const accidents: [what: string, effect: Effect, kind: string, reason: string, effects: number][] =
    [
      ["loses its answer before the effect", { lost: "before" }, "unclear", "reset", 0],
      ["loses its answer after the effect", { lost: "after" }, "unclear", "reset", 1],
      ["is never answered", { hang: "before" }, "unclear", "timeout", 0],
      ["is never answered, though done", { hang: "after" }, "unclear", "timeout", 1],
      ["is answered with half of a JSON", { cut: "json" }, "unclear", "truncated", 1],
      ["is cut before its length", { cut: "length" }, "unclear", "truncated", 1],
      ["is cut between chunks", { cut: "chunk" }, "unclear", "truncated", 1],
      ["is answered with 50 MB", { hugeBytes: 50_000_000 }, "unclear", "too-large", 1],
      ["is answered a byte at a time", { dripMs: 20 }, "unclear", "timeout", 1],
      [
        "is answered with 500 after the effect",
        { status: 500, applied: true },
        "unclear",
        "status",
        1,
      ],
      ["is redirected", { redirect: "http://127.0.0.1:1/elsewhere" }, "unclear", "redirect", 0],
    ];

  it.each(accidents)(
    "%s: it is unclear, and is sent once",
    async (_, effect, kind, reason, effects) => {
      await using sandbox = await startSandboxCompute({ transitionMs: 5 });
      const within = "hang" in effect || "dripMs" in effect ? { timeoutMs: 300 } : {};
      await using compute = clientOf(sandbox.url, { apiKey: sandbox.apiKey, ...within });
      sandbox.weather({ match: "writes", ...effect });
      expect(await failureOf(restart(compute))).toMatchObject({ kind, reason });
      expect(sandbox.writes()).toHaveLength(1);
      expect(sandbox.vm("vm-payments-web-1").restarts).toBe(effects);
    },
  );

  const quota = "snapshot quota exceeded";
  it.each<[object, words?: string | undefined]>([
    [{ success: false, errors: [{ code: 1006, message: quota }], messages: [], result: null }],
    [{ error: { code: "quota", message: quota } }],
    [{ status: "error", message: quota }],
    [{ code: 40013, msg: quota, data: null }],
    [{ ok: false, error: quota }],
    [{ Code: "40013", Message: quota }],
    [{ errors: [{ title: quota }] }],
    [{ result: "failed", reason: quota }],
    [{ data: { success: false, message: quota } }],
    [{ ret: -1, msg: quota }],
    [{ error_code: 7, error_message: quota }],
    [{ response: { state: "REJECTED", detail: quota } }],
    [{ success: false }, undefined],
    [{ id: "req-1", success: false, message: quota }],
    [{ jsonrpc: "2.0", id: 1, error: { code: -32_000, message: quota } }],
  ])("answered with 200 and %j is unclear, in the service's words", async (body, ...words) => {
    await using server = await answering(says(body));
    await using compute = clientOf(server.url);
    expect(await failureOf(restart(compute))).toMatchObject({
      kind: "unclear",
      reason: "says-failure",
      status: 200,
      serviceMessage: words.length > 0 ? words[0] : quota,
    });
    expect(server.asked).toHaveLength(1);
  });

  it.each([
    [{ success: true, errors: [], messages: [], result: null }],
    [{ error: null, errors: {}, data: { task: 7 } }],
    [{ code: 0, msg: "ok" }],
    [{ code: "200", message: "accepted" }],
    [{ status: "accepted", message: "will restart" }],
    [{ status: "queued", code: 202 }],
    [{ id: "vm-payments-web-1", status: "ERROR", error: "it failed last week" }],
    [{ vm: { id: "vm-payments-web-1", status: "ERROR" } }],
    [{ ok: "true", error: "" }],
  ])("answered with 200 and %j is accepted", async (body) => {
    await using server = await answering(says(body));
    await using compute = clientOf(server.url);
    expect(await restart(compute)).toMatchObject({ status: 200 });
  });

  it("finds the connection refused: unreachable, nothing left us", async () => {
    const gone = await answering(says({}));
    await gone[Symbol.asyncDispose]();
    await using compute = clientOf(gone.url);
    expect(await failureOf(restart(compute))).toMatchObject({
      kind: "unreachable",
      reason: "connect",
    });
  });

  it("can't resolve the name: unreachable", async () => {
    await using compute = clientOf("https://compute.example", {
      lookup: (_, __, callback) =>
        callback(Object.assign(new Error("no"), { code: "ENOTFOUND" }), ""),
    });
    expect(await failureOf(restart(compute))).toMatchObject({ kind: "unreachable", reason: "dns" });
  });

  it("gets no connection in time: unreachable", async () => {
    // A name that never resolves stands for a SYN that is never answered: both end before a connection.
    await using compute = clientOf("https://compute.example", { timeoutMs: 50, lookup: () => {} });
    expect(await failureOf(restart(compute))).toMatchObject({
      kind: "unreachable",
      reason: "timeout",
    });
  });

  it("is given up: unclear once a connection stood, unreachable before", async () => {
    await using sandbox = await startSandboxCompute();
    await using compute = clientOf(sandbox.url, { apiKey: sandbox.apiKey });
    sandbox.weather({ match: "writes", hang: "before" });
    const controller = new AbortController();
    const call = failureOf(compute.vms.restart("vm-payments-web-1", { signal: controller.signal }));
    await sandbox.called("writes");
    controller.abort();
    expect(await call).toMatchObject({ kind: "unclear", reason: "aborted" });
    const again = compute.vms.restart("vm-payments-web-1", { signal: controller.signal });
    expect(await failureOf(again)).toMatchObject({ kind: "unreachable", reason: "aborted" });
    expect(sandbox.writes()).toHaveLength(1);
  });

  it("has a fresh connection each time, though reads share theirs", async () => {
    await using sandbox = await startSandboxCompute({ transitionMs: 0 });
    await using compute = clientOf(sandbox.url, { apiKey: sandbox.apiKey });
    await using counting = await countingProxy(sandbox.url);
    await using through = clientOf(counting.url, { apiKey: sandbox.apiKey });
    for (let time = 0; time < 10; time += 1) await through.projects.listAll();
    const shared = counting.connections();
    expect(shared).toBeLessThanOrEqual(2);
    for (let time = 0; time < 3; time += 1) {
      await restart(through);
      await sandbox.settled();
    }
    expect(counting.connections()).toBe(shared + 3);
    expect((await compute.vms.get("vm-payments-web-1")).status).toBe("RUNNING");
  });

  it("is never written a second time when its connection breaks after it was accepted", async () => {
    const seen: string[] = [];
    const server = createServer((socket) => {
      socket.on("data", (data) => {
        seen.push(data.toString("latin1"));
        socket.resetAndDestroy();
      });
      socket.on("error", () => {});
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    await using compute = clientOf(
      `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`,
    );
    expect(await failureOf(compute.projects.delete("prj-1"))).toMatchObject({
      kind: "unclear",
      reason: "reset",
    });
    expect(seen).toHaveLength(1);
    server.close();
  });
});

async function countingProxy(
  target: string,
): Promise<{ url: string; connections(): number } & AsyncDisposable> {
  const sockets = new Set<Socket>();
  let count = 0;
  const server = createServer((client) => {
    count += 1;
    const upstream = connect(Number(new URL(target).port), "127.0.0.1");
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => {});
    }
    client.pipe(upstream).pipe(client);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  return {
    url: `http://127.0.0.1:${address !== null && typeof address === "object" ? address.port : 0}`,
    connections: () => count,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
