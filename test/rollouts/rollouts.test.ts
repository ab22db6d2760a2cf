import { describe, expect, it } from "vitest";
import { createRollouts } from "../../src/rollouts/rollouts.ts";
import { type RolloutRecord, rolloutVersion } from "../../src/rollouts/rollout.ts";
import { testRedis } from "../support/with-redis.ts";

const record = {
  v: rolloutVersion,
  id: "roll-1",
  command: "vm restart",
  requester: { id: "U1", teamId: "T1" },
  total: 2,
} as RolloutRecord;

describe("a stored rollout", () => {
  it("is read by the version before this one, and as the version after it may write it", async () => {
    await using world = await testRedis();
    const { redis, key } = world;
    const rollouts = createRollouts(redis, key);
    await rollouts.plan(record, []);
    const planned = await rollouts.get(record.id);
    if (!planned) throw new Error("no plan");
    expect(planned.progress.requeues).toBeUndefined();
    const progress = { ...planned.progress, requeues: { "1": 2 } };
    expect(await rollouts.move(planned, { state: "running", progress })).toMatchObject({
      progress,
    });

    const { requeues, ...others } = progress;
    const stored = await redis.hget(key("roll", record.id), "progress");
    expect(JSON.parse(stored ?? "")).toEqual({ ...others, anew: requeues });
    expect((await rollouts.get(record.id))?.progress).toEqual(progress);

    await redis.hset(key("roll", record.id), "progress", JSON.stringify(progress));
    expect((await rollouts.get(record.id))?.progress).toEqual(progress);
  });
});
