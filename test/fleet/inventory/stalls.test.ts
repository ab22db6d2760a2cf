import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createInventory } from "../../../src/fleet/inventory/create-inventory.ts";
import { contentsOf } from "../../../src/fleet/inventory/contents.ts";
import { type KnownEntry, KnownFleet } from "../../../src/fleet/inventory/known-fleet.ts";
import { Replica } from "../../../src/fleet/inventory/replica.ts";
import { silentLog } from "../../../src/log/log.ts";
import { testRedis } from "../../support/with-redis.ts";
import { projectNamed, smallService, vmNamed } from "./small-service.ts";

/** Each look at this clock takes 6 ms, so that every loop has computed for 10 ms after two steps. */
beforeEach(() => {
  let now = performance.now();
  vi.spyOn(performance, "now").mockImplementation(() => (now += 6));
});
afterEach(() => void vi.restoreAllMocks());

/** Counts the turns of the event loop, and how many steps of the work fall into one. */
function countTurns() {
  let turns = 0;
  const stepsPerTurn = new Map<number, number>();
  let immediate = setImmediate(function next() {
    turns += 1;
    immediate = setImmediate(next);
  });
  return {
    turns: () => turns,
    step: () => void stepsPerTurn.set(turns, (stepsPerTurn.get(turns) ?? 0) + 1),
    steps: () => [...stepsPerTurn.values()],
    [Symbol.dispose]: () => clearImmediate(immediate),
  };
}

const names = Array.from({ length: 40 }, (_, n) => `project-${n}`);
const fleet = () => smallService(Object.fromEntries(names.map((name) => [name, ["web"]])));

function knownFleet() {
  const known = new KnownFleet();
  for (const project of names.map((name) => projectNamed(name)))
    known.set({ contents: contentsOf(project, [vmNamed(project, "web")]), version: 1 });
  return known;
}

describe("other work has its turn, however large the fleet is,", () => {
  it("while a glob is compared with all VMs", async () => {
    const known = knownFleet();
    using counted = countTurns();
    expect(await known.matchVms("nothing-*")).toEqual([]);
    // Each VM is looked at twice, the second time without regard to case
    expect(counted.turns()).toBeGreaterThanOrEqual(names.length - 2);
  });

  it("while a team's part is taken from it", async () => {
    const known = knownFleet();
    using counted = countTurns();
    await known.follow({ set: counted.step, remove: () => undefined });
    expect(counted.steps().length).toBeGreaterThan(10);
    expect(Math.max(...counted.steps())).toBeLessThanOrEqual(2);
  });

  it("while it is read and compared, and while another process takes it over", async () => {
    await using at = await testRedis();
    using reads = countTurns();
    const compute = fleet();
    const inventory = createInventory({
      ...at,
      compute,
      log: silentLog(),
      refreshMs: 3_600_000,
      againMs: 1_000,
      concurrency: 1,
    });
    await inventory.refresh();
    // Nothing has changed, so nothing is written: the turns are those of the comparison
    compute.before = (call) => void (call.startsWith("vms ") && reads.step());
    expect(await inventory.refresh()).toBe(true);
    expect(reads.steps().length).toBeGreaterThan(10);
    expect(Math.max(...reads.steps())).toBeLessThanOrEqual(3);
    await inventory.close();
    using copies = countTurns();
    const known = new (class extends KnownFleet {
      override set(entry: KnownEntry): void {
        copies.step();
        super.set(entry);
      }
    })();
    await new Replica({ ...at, known, log: silentLog() }).sync();
    expect(known.count()).toEqual({ projects: names.length, vms: names.length });
    expect(Math.max(...copies.steps())).toBeLessThanOrEqual(3);
  });
});
