import { describe, expect, it } from "vitest";
import type { Compute } from "../../../src/fleet/compute/compute.ts";
import { parseRetryAfter, retryWaitMs } from "../../../src/fleet/compute/retry.ts";
import { startSandboxCompute } from "../../../sandbox/compute/start-sandbox-compute.ts";
import type { Effect } from "../../../sandbox/compute/weather.ts";
import { answering, clientOf, failureOf, says, vmRecord, logTo } from "./answering.ts";

const read = (compute: Compute) => compute.vms.get("vm-payments-web-1");

describe("a read", () => {
  const statuses: [status: number, kind: string, tries: number][] = [
    [302, "unexpected", 1],
    [400, "refused", 1],
    [401, "refused", 1],
    [403, "refused", 1],
    [404, "not-found", 1],
    [405, "refused", 1],
    [408, "unreachable", 4],
    [409, "conflict", 1],
    [418, "refused", 1],
    [422, "refused", 1],
    [425, "unreachable", 4],
    [429, "busy", 4],
    [500, "unreachable", 4],
    [501, "unreachable", 1],
    [503, "unreachable", 4],
  ];

  it.each(statuses)("answered with %i is %s after %i tries", async (status, kind, tries) => {
    await using server = await answering(says({ message: "no" }, status));
    await using compute = clientOf(server.url);
    expect(await failureOf(read(compute))).toMatchObject({ kind, status });
    expect(server.asked).toHaveLength(tries);
  });

  const accidents: [what: string, effect: Effect, kind: string, reason: string, tries: number][] = [
    ["loses its answer", { lost: "before" }, "unreachable", "reset", 4],
    ["is never answered", { hang: "before" }, "unreachable", "timeout", 4],
    ["is cut before its length", { cut: "length" }, "unreachable", "truncated", 4],
    ["is cut between chunks", { cut: "chunk" }, "unreachable", "truncated", 4],
    ["gets half of a JSON", { cut: "json" }, "unreachable", "truncated", 4],
    ["gets 50 MB", { hugeBytes: 50_000_000 }, "unexpected", "too-large", 1],
    ["is redirected", { redirect: "http://127.0.0.1:1/" }, "unexpected", "redirect", 1],
  ];

  it.each(accidents)("%s: it is %o", async (_, effect, kind, reason, tries) => {
    await using sandbox = await startSandboxCompute();
    const within = "hang" in effect ? { timeoutMs: 150 } : {};
    await using compute = clientOf(sandbox.url, { apiKey: sandbox.apiKey, ...within });
    sandbox.weather({ match: "reads", ...effect });
    expect(await failureOf(read(compute))).toMatchObject({ kind, reason });
    expect(sandbox.calls()).toHaveLength(tries);
  });

  it("answered with 200 that says that it failed is unexpected, in the service's words", async () => {
    await using server = await answering(
      says({ success: false, errors: [{ message: "the database is down" }] }),
    );
    await using compute = clientOf(server.url);
    for (const call of [
      compute.vms.get("vm-1"),
      compute.projects.vms("prj-1"),
      compute.vms.metrics("vm-1", "1h"),
    ])
      expect(await failureOf(call)).toMatchObject({
        kind: "unexpected",
        reason: "says-failure",
        serviceMessage: "the database is down",
      });
    expect(server.asked).toHaveLength(3);
  });

  it("succeeds when the trouble passes, and every try is reported", async () => {
    await using sandbox = await startSandboxCompute();
    const reports: unknown[] = [];
    const events: object[] = [];
    await using compute = clientOf(sandbox.url, {
      apiKey: sandbox.apiKey,
      onCall: ({ endpoint, attempt, status, kind }) =>
        reports.push([endpoint, attempt, status, kind]),
      log: logTo((line) => events.push(line)),
    });
    sandbox.weather({ match: "reads", times: 2, status: 503 });
    expect((await read(compute)).name).toBe("web-1");
    expect(reports).toEqual([
      ["GET /v1/vms/{vm_id}", 1, 503, "unreachable"],
      ["GET /v1/vms/{vm_id}", 2, 503, "unreachable"],
      ["GET /v1/vms/{vm_id}", 3, 200, undefined],
    ]);
    expect(events).toHaveLength(2);
    expect(JSON.stringify(events)).not.toContain("vm-payments");
  });

  it.each([
    ["HTML", "text/html", "<html><body>Sign in</body></html>"],
    ["text", "text/plain", "hello"],
    ["nothing", "application/json", ""],
    ["text that says it is JSON", "application/json", "OK"],
  ])("answered with %s is unexpected, once", async (_, type, text) => {
    await using server = await answering((__, response) =>
      response.writeHead(200, { "content-type": type }).end(text),
    );
    await using compute = clientOf(server.url);
    expect(await failureOf(read(compute))).toMatchObject({
      kind: "unexpected",
      reason: "answer",
      status: 200,
    });
    expect(server.asked).toHaveLength(1);
  });

  it("takes records up to its limit and lists up to sixteen times as much", async () => {
    const padding = "x".repeat(5000);
    await using server = await answering((request, response) =>
      says(
        request.url?.includes("/projects/") ? [{ ...vmRecord, padding }] : { ...vmRecord, padding },
      )(request, response),
    );
    await using compute = clientOf(server.url, { maxResponseBytes: 1000 });
    expect(await failureOf(compute.vms.get("vm-1"))).toMatchObject({
      kind: "unexpected",
      reason: "too-large",
    });
    expect(await compute.projects.vms("prj-1")).toHaveLength(1);
  });

  it("is given up between tries, and the last of them is what is known", async () => {
    await using server = await answering(says({}, 429));
    const controller = new AbortController();
    await using compute = clientOf(server.url, {
      retryDelays: { baseMs: 60_000, maxMs: 60_000, random: () => 1 },
      log: logTo(() => controller.abort()),
    });
    const call = compute.vms.get("vm-1", { signal: controller.signal });
    expect(await failureOf(call)).toMatchObject({ kind: "busy", status: 429 });
    expect(server.asked).toHaveLength(1);
  });

  it("is given up while it waits for a free connection", async () => {
    await using sandbox = await startSandboxCompute();
    await using compute = clientOf(sandbox.url, { apiKey: sandbox.apiKey, connections: 1 });
    sandbox.weather({ match: "reads", hang: "before", times: 1 });
    const first = new AbortController();
    const second = new AbortController();
    const hanging = failureOf(compute.vms.get("vm-1", { signal: first.signal }));
    const waiting = failureOf(compute.vms.get("vm-2", { signal: second.signal }));
    await sandbox.called("reads");
    second.abort();
    expect(await waiting).toMatchObject({ kind: "unreachable", reason: "aborted" });
    first.abort();
    await hanging;
    expect((await read(compute)).status).toBe("RUNNING");
    expect(sandbox.calls()).toHaveLength(2);
  });
});

describe("the retry budget", () => {
  it("keeps retries to a tenth of the calls when everything fails", async () => {
    await using server = await answering(says({}, 503));
    await using compute = clientOf(server.url, { retryDelays: { baseMs: 0 } });
    const calls = 200;
    await Promise.all(Array.from({ length: calls }, () => failureOf(compute.vms.get("vm-1"))));
    const retries = server.asked.length - calls;
    // A tenth, and the ten at the start
    expect(retries).toBeGreaterThanOrEqual(20);
    expect(retries).toBeLessThanOrEqual(20 + 10);
  });
});

describe("Retry-After", () => {
  const delays = { baseMs: 100, maxMs: 5000, random: () => 0.5 };

  it("is waited for when it is short, and ends the call when it is long", () => {
    expect(retryWaitMs(1, 2000, delays)).toBe(2050);
    expect(retryWaitMs(1, 30_000, delays)).toBeUndefined();
    expect(retryWaitMs(3, undefined, delays)).toBe(200);
    expect(retryWaitMs(4, undefined, delays)).toBeUndefined();
  });

  it("is read as seconds or as a date, capped at an hour; anything else is none", () => {
    const now = Date.parse("2026-11-20T10:00:00Z");
    expect(parseRetryAfter("7", now)).toBe(7000);
    expect(parseRetryAfter("Fri, 20 Nov 2026 10:00:30 GMT", now)).toBe(30_000);
    expect(parseRetryAfter("Fri, 20 Nov 2026 09:00:00 GMT", now)).toBe(0);
    expect(parseRetryAfter("999999999", now)).toBe(3_600_000);
    for (const odd of ["-1", "soon", "1e9", "", "NaN", undefined])
      expect(parseRetryAfter(odd, now)).toBeUndefined();
  });

  it("reaches the caller of a change that was told to slow down", async () => {
    await using sandbox = await startSandboxCompute();
    await using compute = clientOf(sandbox.url, { apiKey: sandbox.apiKey });
    sandbox.weather({ match: "*", status: 429, retryAfter: 30 });
    expect(await failureOf(compute.vms.stop("vm-payments-web-1"))).toMatchObject({
      kind: "busy",
      retryAfterMs: 30_000,
    });
    expect(await failureOf(read(compute))).toMatchObject({ kind: "busy", retryAfterMs: 30_000 });
    expect(sandbox.calls()).toHaveLength(2);
  });
});
