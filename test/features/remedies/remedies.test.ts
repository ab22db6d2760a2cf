import { describe, expect, it } from "vitest";
import { createRemedies } from "../../../src/features/remedies/remedies.ts";
import { remedyPart } from "../../../src/features/remedies/advise.ts";
import { commands } from "../../../src/features/index.ts";
import { requestable } from "../../../src/registry/define.ts";
import { testRedis } from "../../support/with-redis.ts";

const recordOf = (request: string, vmId = "vm-1") => ({
  request,
  alert: "a-1",
  vmId,
  project: { id: "prj-1", name: "payments" },
  command: "vm restart",
  alertProjects: [],
  fired: { HighCpu: 1 },
});

describe("a remedy", () => {
  it("is followed once and judged once, however often and by whomever that is tried", async () => {
    await using here = await testRedis();
    const [one, other] = [
      createRemedies(here.redis, here.key),
      createRemedies(here.redis, here.key),
    ];
    await Promise.all([one, other, one].map((all) => all.follow(recordOf("r-1"))));
    const remedy = await one.get("r-1");
    if (!remedy) throw new Error("no remedy");
    expect([remedy.state, remedy.revision]).toEqual(["open", 1]);
    const judgment = (verdict: "helped" | "failed") => ({
      verdicts: { HighCpu: verdict },
      firedOnce: [],
      changedAt: 1,
      judgedAt: 2,
      isSuperseded: false,
    });
    const judged = await Promise.all([
      one.judge(remedy, judgment("failed"), { isLast: true, audit: undefined }),
      other.judge(remedy, judgment("helped"), { isLast: true, audit: undefined }),
    ]);
    expect(judged.filter(Boolean)).toHaveLength(1);
    expect(await one.voided(remedy)).toBe(false);
    const { advise } = remedyPart({ remedies: one, changes: requestable(commands) });
    const all = { scope: undefined, projectName: "payments" };
    expect(await advise("vm-1", ["HighCpu"], all)).toHaveLength(1);
    expect(await advise("vm-2", ["HighCpu"], all)).toEqual([]);
    expect(await advise("vm-1", ["DiskFull"], all)).toEqual([]);
    // The VM belongs to another team by now, whose people saw nothing of it.
    const sees = ({ name }: { name: string }) => name === "ml";
    const others = { scope: { key: "ml", sees }, projectName: "ml" };
    expect(await advise("vm-1", ["HighCpu"], others)).toEqual([]);
  });

  it("is kept with the newest of its kind for 90 days; one whose process died before it was stored counts as none", async () => {
    await using here = await testRedis();
    const all = createRemedies(here.redis, here.key);
    for (let n = 0; n < 13; n++) await all.follow(recordOf(`r-${n}`));
    const kept = await all.of("vm-1", "HighCpu");
    expect(kept).toHaveLength(10);
    const [list = ""] = await here.redis.keys(here.key("remedies", "of", "*"));
    const day = 24 * 3600_000;
    expect(await here.redis.pttl(list)).toBeGreaterThan(89 * day);
    const [newest] = kept;
    if (!newest) throw new Error("none is kept");
    await all.voided(newest);
    expect(await here.redis.pttl(here.key("remedy", newest.record.request))).toBeGreaterThan(
      89 * day,
    );
    await here.redis.del(here.key("remedy", kept[1]?.record.request ?? ""));
    expect(await all.of("vm-1", "HighCpu")).toHaveLength(8);
  });
});
