import { describe, expect, it } from "vitest";
import { createShares } from "../../../src/requests/perform/fair-shares.ts";
import { hears } from "../../stories/words.ts";
import { startWorld, testPolicy } from "../../support/start-world.ts";

describe("a worker's slots", () => {
  it("go to one project up to three quarters, and to a slow one up to a quarter", () => {
    let at = 0;
    const shares = createShares(20, () => at);
    const taken = Array.from({ length: 30 }, () => shares.take("a"));
    const leave = taken.filter((one) => one !== undefined);
    expect(leave).toHaveLength(15);
    expect(shares.take("b")).toBeDefined();
    at += 3_000;
    for (const one of leave) one();
    const later = Array.from({ length: 30 }, () => shares.take("a"));
    expect(later.filter((one) => one !== undefined)).toHaveLength(5);
    for (const one of later) one?.();
    at += 60_000;
    const healed = Array.from({ length: 30 }, () => shares.take("a"));
    expect(healed.filter((one) => one !== undefined)).toHaveLength(15);
  });

  it("are left for others by 30 requests on a project that hangs: one elsewhere is told promptly", async () => {
    const hanging = Array.from({ length: 30 }, (_, n) => `hung-${n}`);
    const paths = new Set<string>();
    await using world = await startWorld({
      policy: `${testPolicy.replace("httpTimeout: 700ms, quiesce: 2000ms, settleDeadline: 4s", "httpTimeout: 4s, quiesce: 9s, settleDeadline: 12s")}limits: { requestsPerMinute: 1000 }\n`,
      prepare: (compute) => {
        for (const name of hanging) {
          const id = compute.edit.addVm({ project: "payments", name });
          compute.weather({ match: `GET /v1/vms/${id}`, hang: "before" });
          paths.add(`/v1/vms/${id}`);
        }
      },
    });
    await Promise.all(hanging.map((name) => world.olivia.types("ops", `/vm restart ${name}`)));
    await expect.poll(() => world.store.openCount(), { timeout: 10_000 }).toBe(30);
    await world.olivia.types("status", "/vm start worker-1");
    await hears(world.olivia, "status", /Started worker-1/);
    // Each read of a hanging one lasts 4 s: what began since is under way, in at most their share of the 20 slots
    const since = Date.now() - 3_900;
    const underWay = world.compute.calls().filter(({ path, at }) => paths.has(path) && at > since);
    expect(underWay.length).toBeGreaterThan(0);
    expect(underWay.length).toBeLessThanOrEqual(15);
  });
});
