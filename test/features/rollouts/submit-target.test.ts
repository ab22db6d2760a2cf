import { describe, expect, it } from "vitest";
import { restart } from "../../../src/commands/vm/restart.ts";
import {
  type StoredRollout,
  newRolloutId,
  requestIdOf,
} from "../../../src/features/rollouts/rollout.ts";
import { submitTarget } from "../../../src/features/rollouts/advance-rollout.ts";
import { requestIn, stageOf, vmTarget } from "../../core/asking.ts";
import { workerHere } from "../../core/perform/worker-here.ts";

function rollout(id: string): StoredRollout {
  return {
    record: {
      id,
      command: "vm restart",
      input: {},
      requester: { id: "U0OLIVIA", teamId: "T0OURS", name: "olivia" },
      channelId: "C01OPS",
      policyVersion: "v1",
    },
    state: "running",
    targets: [vmTarget("web-1")],
    delivered: { marks: {}, card: { channelId: "C01OPS", ts: "1.1" }, isElsewhere: false },
  } as unknown as StoredRollout;
}

describe("a target of a rollout", () => {
  it("is one request however late it is submitted again: by a worker that slept, after the first one has ended", async () => {
    await using here = await workerHere();
    const id = newRolloutId();
    const [wanted, target] = [requestIdOf(id, 0), vmTarget("web-1")];
    const submitted = () =>
      submitTarget(rollout(id), wanted, target, restart, { workerContext: here.by });
    expect(await submitted()).toBe(wanted);
    const first = requestIn(await here.by.store.get(wanted), "authorized");
    expect(first.record).toMatchObject({
      origin: { kind: "rollout", rollout: id },
      threadTs: "1.1",
      input: { vms: [target.id] },
    });
    await here.by.store.move(first, { to: stageOf("cancelled"), why: "taken back" });
    // The keys that detect equal requests expire after a while.
    const keys = await here.redis.keys("*:ask:*");
    await here.redis.del(...keys.filter((key) => key.endsWith(wanted)));
    expect(await submitted()).toBe(wanted);
    expect(await here.by.store.get(wanted)).toMatchObject({ state: "cancelled", revision: 2 });
  });

  it("uses the request that the same person made a moment ago, if there is one", async () => {
    await using here = await workerHere();
    const [one, other] = [newRolloutId(), newRolloutId()];
    const target = vmTarget("web-1");
    const submitted = (id: string) =>
      submitTarget(rollout(id), requestIdOf(id, 0), target, restart, { workerContext: here.by });
    expect(await submitted(one)).toBe(requestIdOf(one, 0));
    expect(await submitted(other)).toBe(requestIdOf(one, 0));
  });

  it("can't run any more when its rollout was stopped: a worker that finds it lets it expire", async () => {
    await using here = await workerHere();
    const id = newRolloutId();
    const wanted = requestIdOf(id, 0);
    const stopped: StoredRollout = { ...rollout(id), state: "ending" };
    await submitTarget(stopped, wanted, vmTarget("web-1"), restart, { workerContext: here.by });
    const { runsUntil = Infinity } = (await here.by.store.get(wanted))?.record ?? {};
    expect(runsUntil).toBeLessThan(await here.by.store.now());
  });
});
