import { describe, expect, it } from "vitest";
import { Trail } from "../../../src/audit/trail.ts";
import { type EventSource, type Topic, vmEvents } from "../../../src/core/events/event.ts";
import { createEvents } from "../../../src/core/events/read-events.ts";
import { trailFollower } from "../../../src/features/subscriptions/follow-trail.ts";
import { createTrailPosition } from "../../../src/features/subscriptions/trail-position.ts";
import type { Inventory, KnownVm } from "../../../src/fleet/inventory/inventory.ts";
import { silentLog } from "../../../src/log/log.ts";
import { knownVm } from "../../../demo/cards/requests.ts";
import { twoTeams } from "../../core/permit/two-teams.ts";
import { testRedis } from "../../support/with-redis.ts";

const ops = "C01OPS";
const vendor = "C07VENDOR";

const pay = { ...knownVm("web-1", "RUNNING", "payments"), id: "vm-pay" };
const sea = { ...knownVm("web-1", "RUNNING", "search"), id: "vm-sea" };

const kind = { words: ["leak", "leaks"], weight: "decision" } as const;
const leaks: EventSource = {
  ...vmEvents("leaks", "attestation", kind, () => false),
  topic: "drift",
};

const inventoryOf = (vms: readonly KnownVm[]): Inventory => {
  const inventory = {
    upToDate: async () => undefined,
    vms: async () => vms,
    projects: async () => [],
    seenIn: (readScope: () => Promise<{ sees(project: object): boolean }>) => ({
      ...inventory,
      vms: async () => {
        const scope = await readScope();
        return vms.filter(({ projectId, projectName }) =>
          scope.sees({ id: projectId, name: projectName }),
        );
      },
    }),
  };
  // Only the parts that events use
  return inventory as unknown as Inventory;
};

async function startTrail() {
  const { redis, key, [Symbol.asyncDispose]: close } = await testRedis();
  const trail = new Trail(redis, key);
  const posted = new Map<string, string>();
  const subscriptions: {
    channelId: string;
    glob: string;
    events: readonly Topic[];
    by: string;
    at: number;
  }[] = [];
  let isBroken = false;
  const source: EventSource = {
    ...leaks,
    read: async (entries, about) =>
      isBroken ? Promise.reject(new Error("broken")) : leaks.read(entries, about),
  };
  const events = createEvents({
    redis,
    key,
    inventory: inventoryOf([pay, sea]),
    store: { getMany: async () => [] },
    changes: [],
    sources: () => [source],
    personName: async (id) => id,
    log: silentLog(),
  });
  const position = createTrailPosition(redis, key);
  const process = ({ dies = false, laterMs = 0 } = {}) =>
    trailFollower({
      now: () => Date.now() + laterMs,
      config: { policy: twoTeams },
      events,
      position: dies ? { ...position, move: () => Promise.reject(new Error("killed")) } : position,
      all: async () => subscriptions,
      async post(channelId, lines) {
        for (const line of lines) posted.set(`${channelId} ${line.key}`, line.text);
      },
    });
  return {
    position,
    process,
    subscriptions,
    breaks: (broken: boolean) => void (isBroken = broken),
    leak: (target: string) =>
      trail.append({ what: "attestation", target, move: "failed", why: "leak" }),
    /** The channels of the lines that were brought, each line once, as feeds post it. */
    lines: () => [...posted.keys()].map((line) => line.split(" ")[0]),
    async subscribe(channelId: string, glob: string, topics: readonly Topic[]) {
      await process().begin();
      subscriptions.push({ channelId, glob, events: topics, by: "U0PAY", at: await trail.now() });
    },
    [Symbol.asyncDispose]: close,
  };
}

describe("a subscribed channel that follows the audit trail", () => {
  it("is told what the trail notes from its subscription on, within its globs, its topics, and what it may see", async () => {
    await using world = await startTrail();
    await world.leak(pay.id);
    await world.subscribe(ops, "web-*", ["drift"]);
    await world.subscribe(vendor, "*", ["drift"]);
    await world.subscribe(ops, "*", ["trouble"]);
    await world.leak(pay.id);
    await world.leak(sea.id);
    await world.process().follow();
    expect(world.lines()).toHaveLength(2);
    expect(new Set(world.lines())).toEqual(new Set([ops, vendor]));
  });

  it("is told once and misses nothing, though a process dies before the position moves, and two follow", async () => {
    await using world = await startTrail();
    await world.subscribe(ops, "*", ["drift"]);
    await world.leak(pay.id);
    await expect(world.process({ dies: true }).follow()).rejects.toThrow("killed");
    await world.leak(pay.id);
    await Promise.all([world.process().follow(), world.process().follow()]);
    expect(world.lines()).toEqual([ops, ops]);
    const before = await world.position.read();
    await world.process().follow();
    expect(await world.position.read()).toBe(before);
    expect(world.lines()).toHaveLength(2);
  });

  it("is told later what could not be read", async () => {
    await using world = await startTrail();
    await world.subscribe(ops, "*", ["drift"]);
    await world.leak(pay.id);
    world.breaks(true);
    await world.process().follow();
    expect(world.lines()).toEqual([]);
    world.breaks(false);
    await world.process().follow();
    expect(world.lines()).toEqual([ops]);
  });

  it("waits ten minutes for what can't be read, and not longer, so that it hears of the rest", async () => {
    await using world = await startTrail();
    await world.subscribe(ops, "*", ["drift"]);
    const before = await world.position.read();
    await world.leak(pay.id);
    world.breaks(true);
    await world.process({ laterMs: 9 * 60_000 }).follow();
    expect(await world.position.read()).toBe(before);
    await world.process({ laterMs: 11 * 60_000 }).follow();
    expect(await world.position.read()).not.toBe(before);
  });
});
