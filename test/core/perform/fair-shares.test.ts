import { describe, expect, it } from "vitest";
import { createShares } from "../../../src/core/perform/fair-shares.ts";
import { hears } from "../../stories/words.ts";
import { policyWith, startWorld } from "../../support/start-world.ts";
import { until } from "../../support/until.ts";

/**
 * Simulates requests of one project that are all made at once and take `stepMs` each, in simulated
 * time.
 */
function simulateCrowd(load: { requests: number; stepMs: number; forMs: number }) {
  let at = 0;
  const shares = createShares(20, () => at);
  const due: { at: number; happens(): void }[] = [];
  const counts = { turns: 0, done: 0, lastMs: 0 };
  const push = (inMs: number, happens: () => void) => void due.push({ at: at + inMs, happens });
  const comes = (request: string): void => {
    counts.turns += 1;
    const turn = shares.take("slow", request);
    if ("waitMs" in turn) return push(turn.waitMs, () => comes(request));
    push(load.stepMs, () => {
      turn.leave();
      counts.done += 1;
      counts.lastMs = at;
    });
  };
  for (let n = 0; n < load.requests; n++) comes(`r-${n}`);
  while (at < load.forMs && due.length > 0) {
    const next = due.reduce((first, one) => (one.at < first.at ? one : first));
    due.splice(due.indexOf(next), 1);
    at = next.at;
    next.happens();
  }
  return counts;
}

describe("a worker's slots", () => {
  it("go to one project up to three quarters, and to a slow one up to a quarter", () => {
    let at = 0;
    const shares = createShares(20, () => at);
    const takes = (project: string, many: number) =>
      Array.from({ length: many }, (_, n) => shares.take(project, `${project} ${n}`)).flatMap(
        (turn) => ("leave" in turn ? [turn] : []),
      );
    const taken = takes("a", 30);
    expect(taken).toHaveLength(15);
    expect(takes("b", 1)).toHaveLength(1);
    at += 3_000;
    for (const { leave } of taken) leave();
    const later = takes("a", 30);
    expect(later).toHaveLength(5);
    for (const { leave } of later) leave();
    at += 60_000;
    expect(takes("a", 30)).toHaveLength(15);
  });

  it("keep the worker busy with few of those that wait for a slow project, and its places with work", () => {
    const seconds = 100;
    const { turns, done } = simulateCrowd({ requests: 250, stepMs: 4_000, forMs: seconds * 1000 });
    // Each of the 5 places does a step in 4 s. A turn without a place costs over a millisecond.
    expect(turns / seconds).toBeLessThan(80);
    expect(done).toBeGreaterThan(0.9 * 5 * (seconds / 4));
  });

  it.each([
    ["30 quick ones", { requests: 30, stepMs: 50 }, 700],
    ["250 quick ones", { requests: 250, stepMs: 50 }, 2_500],
    ["one after the other", { requests: 1, stepMs: 50 }, 50],
  ])("hold up no crowd whose project is quick: %s", (_which, load, withinMs) => {
    const { done, lastMs } = simulateCrowd({ ...load, forMs: 60_000 });
    expect(done).toBe(load.requests);
    expect(lastMs).toBeLessThanOrEqual(withinMs);
  });

  it("forget those that never come again", () => {
    let at = 0;
    const shares = createShares(
      1,
      () => at,
      () => 0,
    );
    shares.take("a", "runs");
    for (let n = 0; n < 1_000; n++) shares.take("a", `gone ${n}`);
    at += 1_000;
    expect(shares.take("a", "waits")).toEqual({ waitMs: 3_000 });
    at += 6_000;
    expect(shares.take("b", "runs")).toHaveProperty("leave");
    expect(shares.take("b", "waits")).toEqual({ waitMs: 200 });
    at += 100;
    expect(shares.take("b", "waits")).toEqual({ waitMs: 200 });
    at += 1_000;
    expect(shares.take("b", "waits")).toEqual({ waitMs: 550 });
  });

  it("are left for others by 20 requests on a project that hangs: one elsewhere goes on", async () => {
    const hanging = Array.from({ length: 20 }, (_, n) => `hung-${n}`);
    const paths = new Set<string>();
    await using world = await startWorld({
      policy: policyWith({}, "limits: { requestsPerMinute: 1000 }\n"),
      prepare: (compute) => {
        for (const name of hanging) {
          const id = compute.edit.addVm({ project: "payments", name });
          compute.weather({ match: `GET /v1/vms/${id}`, hang: "before" });
          paths.add(`/v1/vms/${id}`);
        }
      },
    });
    await Promise.all(hanging.map((name) => world.olivia.types("ops", `/vm restart ${name}`)));
    await until(() => world.store.openCount()).toBe(20);
    await world.olivia.types("status", "/vm start worker-1");
    await hears(world.olivia, "status", /Started worker-1/);
    // None of their reads has ended. They fill at most their project's share of the 20 slots.
    const underWay = world.compute.calls().filter(({ path }) => paths.has(path));
    expect(underWay.length).toBeGreaterThan(0);
    expect(underWay.length).toBeLessThanOrEqual(15);
    // Else the end of the world would wait for them
    await world.compute.close();
  });
});
