import { describe, expect, it } from "vitest";
import { Trail } from "../../src/audit/trail.ts";
import { createStatusRecords } from "../../src/monitor/status-records.ts";
import type { InventoryState, KnownVm } from "../../src/fleet/inventory/inventory.ts";
import { runProbe } from "../../src/monitor/monitor.ts";
import { statusProbe } from "../../src/monitor/status-probe.ts";
import { testRedis } from "../support/with-redis.ts";
import { createTeller } from "./teller.ts";
import { until } from "../support/until.ts";
import { knownVm } from "../../demo/cards/requests.ts";
import { type Sent, sentFor } from "../support/sent-for.ts";
import { commands } from "../../src/features/index.ts";
import { requestable } from "../../src/registry/define.ts";

async function startStatuses(sentTo: (id: string) => Sent | undefined = () => undefined) {
  const redis = await testRedis();
  const records = createStatusRecords(redis.redis, redis.key);
  const { said, texts, ...telling } = createTeller();
  let looks = 0;
  const lookAt = async (vms: readonly KnownVm[], state: Partial<InventoryState> = {}) => {
    listed = vms;
    const options = {
      redis: redis.redis,
      key: redis.key,
      ...telling,
      records,
      trail: new Trail(redis.redis, redis.key),
      readEveryMs: 60_000,
      now: Date.now,
      store: sentFor(sentTo),
      commands: requestable(commands),
      compute: { vms: { get: async (id: string) => statusesNow(id) } },
      inventory: {
        vms: async () => vms,
        state: async () => ({
          refreshedAt: Date.now(),
          version: ++looks,
          stale: false,
          vms: 0,
          projects: 0,
          unread: [],
          ...state,
        }),
      },
    };
    await Promise.all([1, 2, 3].map(() => runProbe(statusProbe(options))));
  };
  /** What a single read gives; the same as the list, unless a test sets something else. */
  const reads = new Map<string, KnownVm>();
  let listed: readonly KnownVm[] = [];
  const statusesNow = (id: string) => {
    const vm = reads.get(id) ?? listed.find((one) => one.id === id);
    if (!vm) throw new Error(`no ${id}`);
    return vm;
  };
  return {
    reads,
    look: lookAt,
    said,
    texts,
    records,
    redis,
    [Symbol.asyncDispose]: () => redis[Symbol.asyncDispose](),
  };
}

describe("VMs that change without being asked to", () => {
  it("are not told of while their status can't be read, nor for how it was before that", async () => {
    await using at = await startStatuses();
    const run = (...all: [string, string][]) =>
      at.look(all.map(([name, status]) => knownVm(name, status)));
    await run(["off", "STOPPED"], ["bad", "ERROR"], ["ok", "RUNNING"]);
    await run(["off", "UNREADABLE"], ["bad", "UNREADABLE"], ["ok", "UNREADABLE"]);
    await run(["off", "STOPPED"], ["bad", "ERROR"], ["ok", "UNREADABLE"], ["new", "UNREADABLE"]);
    await run(["off", "STOPPED"], ["bad", "ERROR"], ["ok", "UNREADABLE"], ["new", "STOPPED"]);
    expect(at.texts()).toEqual([]);
    await run(["off", "STOPPED"], ["bad", "ERROR"], ["ok", "STOPPED"], ["new", "STOPPED"]);
    expect(at.texts()).toEqual(["⚪ ok in shop stopped, was RUNNING."]);
  });

  it("are told once when they go to ERROR or stop, whatever the number of processes", async () => {
    await using at = await startStatuses();
    await at.look([knownVm("web-1"), knownVm("old", "ERROR")]);
    expect(at.texts()).toEqual([]); // as it was found
    await at.look([knownVm("web-1", "ERROR"), knownVm("old", "ERROR")]);
    await at.look([knownVm("web-1", "ERROR"), knownVm("old", "ERROR")]);
    expect(at.texts()).toEqual(["🔴 web-1 in shop went to ERROR, was RUNNING."]);
    await at.look([knownVm("web-1"), knownVm("old", "STOPPED")]);
    expect(at.texts()[1]).toBe("⚪ old in shop stopped, was ERROR.");
    await at.look([knownVm("web-1", "ERROR"), knownVm("old", "STOPPED")]);
    expect(at.said.size).toBe(3);
  });

  it("are told though a process whose clock was hours ahead had read the list", async () => {
    await using at = await startStatuses();
    await at.look([knownVm("web-1")], { refreshedAt: Date.now() + 3 * 3_600_000 });
    await at.look([knownVm("web-1", "ERROR")]);
    expect(at.texts()).toEqual(["🔴 web-1 in shop went to ERROR, was RUNNING."]);
    // A process with an older copy of the list tells nothing
    await at.look([knownVm("web-1", "STOPPED")], { version: 1 });
    expect(at.texts()).toHaveLength(1);
  });

  it("are not told when a request of ours did it, is new, or the service is away", async () => {
    await using at = await startStatuses((id) =>
      id === "vm-asked" ? { command: "vm restart", state: "accepted" } : undefined,
    );
    await at.look([knownVm("asked"), knownVm("web-1")]);
    await at.look([knownVm("asked", "STOPPED"), knownVm("web-1"), knownVm("new", "STOPPED")]);
    await at.look([knownVm("web-1", "ERROR")], { stale: true });
    expect(at.texts()).toEqual([]);
  });

  it.each<[what: string, sent: Sent, status: string]>([
    ["a snapshot was taken right before", { command: "vm snapshot", state: "done" }, "ERROR"],
    ["a snapshot is being taken", { command: "vm snapshot", state: "accepted" }, "STOPPED"],
    ["a console is open", { command: "vm console", state: "done" }, "ERROR"],
    [
      "a restart ended in RUNNING before",
      { command: "vm restart", state: "done", left: "RUNNING" },
      "ERROR",
    ],
    ["a stop was refused", { command: "vm stop", state: "rejected" }, "STOPPED"],
    [
      "a stop was done long before",
      { command: "vm stop", state: "done", left: "STOPPED", agoMs: 3_600_000 },
      "STOPPED",
    ],
    [
      "the outcome of a restart has been unknown for long",
      { command: "vm restart", state: "unknown", agoMs: 3_600_000 },
      "ERROR",
    ],
  ])("are told although %s", async (_, sent, status) => {
    await using at = await startStatuses(() => sent);
    await at.look([knownVm("web-1")]);
    await at.look([knownVm("web-1", status)]);
    expect(at.texts()).toHaveLength(1);
  });

  it.each<[what: string, sent: Sent, status: string]>([
    ["a stop ended so", { command: "vm stop", state: "done", left: "STOPPED" }, "STOPPED"],
    ["a restart failed so", { command: "vm restart", state: "failed", left: "ERROR" }, "ERROR"],
    ["a resize is under way", { command: "vm resize", state: "accepted" }, "STOPPED"],
    ["the outcome of a stop is unknown", { command: "vm stop", state: "unknown" }, "STOPPED"],
  ])("are not told where %s", async (_, sent, status) => {
    await using at = await startStatuses(() => sent);
    await at.look([knownVm("web-1")]);
    await at.look([knownVm("web-1", status)]);
    expect(at.texts()).toEqual([]);
  });

  it("are told where a stop had ended so, and the VM ran again before it stopped", async () => {
    let endedAt = Infinity;
    await using at = await startStatuses(() => {
      const agoMs = Date.now() - endedAt;
      return agoMs < 0 ? undefined : { command: "vm stop", state: "done", left: "STOPPED", agoMs };
    });
    await at.look([knownVm("web-1")]);
    endedAt = Date.now();
    await at.look([knownVm("web-1", "STOPPED")]);
    expect(at.texts()).toEqual([]);
    // The next look is later than the end, to the millisecond.
    await until(() => Date.now() > endedAt + 5);
    await at.look([knownVm("web-1")]);
    await at.look([knownVm("web-1", "STOPPED")]);
    expect(at.texts()).toEqual(["⚪ web-1 in shop stopped, was RUNNING."]);
  });

  it("are not told of what a list saw while a request ran that has ended by now", async () => {
    await using at = await startStatuses(() => ({
      command: "vm resize",
      state: "done",
      left: "RUNNING",
    }));
    await at.look([knownVm("web-1")]);
    at.reads.set("vm-web-1", knownVm("web-1"));
    await at.look([knownVm("web-1", "STOPPED")]);
    expect(at.texts()).toEqual([]);
  });

  it("are told together, in one message, when there are many", async () => {
    await using at = await startStatuses();
    const many = Array.from({ length: 40 }, (_, n) => `web-${n}`);
    await at.look(many.map((name) => knownVm(name)));
    await at.look(many.map((name) => knownVm(name, "ERROR")));
    expect(at.texts()).toEqual(["40 VMs changed without a request to Gatehouse:"]);
    const [told] = [...at.said.values()];
    expect(told?.blocks.length).toBeLessThanOrEqual(50);
    expect(JSON.stringify(told)).toContain("and 30 more");
  });

  it("are remembered with the time, and forgotten with their project", async () => {
    await using at = await startStatuses();
    await at.look([knownVm("web-1", "ERROR")]);
    const since = await at.records.since([knownVm("web-1", "ERROR"), knownVm("web-2")]);
    expect([...since.keys()]).toEqual(["vm-web-1"]);
    await at.look([knownVm("db-1", "RUNNING", "other")]);
    expect(await at.records.since([knownVm("web-1", "ERROR")])).toEqual(new Map());
  });
});
