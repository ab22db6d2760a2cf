import { expect, it } from "vitest";
import {
  rolloutOutcome,
  rolloutProgress,
  rolloutRecord,
  rolloutState,
  rolloutTargets,
} from "../../../src/features/rollouts/rollout-record.ts";
import {
  type Outcome,
  type RolloutRecord,
  rolloutStates,
} from "../../../src/features/rollouts/rollout.ts";
import { createRollouts } from "../../../src/features/rollouts/rollouts.ts";
import { vmTarget } from "../../core/asking.ts";
import { expectOnlyWhole, garbage } from "../../support/only-whole.ts";
import { testRedis } from "../../support/with-redis.ts";

const record: RolloutRecord = {
  id: "roll-1",
  command: "vm restart",
  input: {},
  words: "*",
  options: { maxUnavailable: 1, canary: true, stopOnFailure: 1 },
  total: 1,
  isEverything: true,
  requester: { id: "U0OLIVIA", teamId: "T01CONF", name: "olivia" },
  channelId: "C01OPS",
  threadTs: "1.2",
  policyVersion: "v1",
  leftOut: [{ name: "web-2", why: "it is STOPPED" }],
  createdAt: 1,
};
const progress = {
  next: 1,
  open: [{ n: 0, request: "r-1" }],
  again: [0],
  requeues: { 0: 1 },
  ok: 0,
  already: 0,
  failed: 1,
  unknown: 1,
  why: "it failed",
  culprit: 0,
  endsAs: "failed",
  by: { id: "U0OLIVIA", name: "olivia" },
  startedAt: 1,
} as const;
const outcome: Outcome = {
  n: 0,
  is: "failed",
  request: "r-1",
  why: "no",
  tookMs: 1,
  isUntrusted: true,
};

it("a rollout's parts are read whole or not at all", () => {
  for (const state of rolloutStates) expect(rolloutState.check(state, "roll-1")).toBe(state);
  expectOnlyWhole(rolloutRecord, record);
  expectOnlyWhole(rolloutTargets, [vmTarget("web-1")]);
  expectOnlyWhole(rolloutProgress, progress);
  expectOnlyWhole(rolloutOutcome, outcome);
});

it("a rollout of which a part can't be read is as good as gone, so no further target begins", async () => {
  await using here = await testRedis();
  const rollouts = createRollouts(here.redis, here.key);
  await rollouts.plan(record, [vmTarget("web-1")]);
  const planned = await rollouts.get(record.id);
  if (!planned) throw new Error("it is gone");
  await rollouts.move(planned, { state: "running", progress, outcomes: [outcome] });
  const whole = await here.redis.hgetall(here.key("roll", record.id));
  expect(await rollouts.get(record.id)).toMatchObject({ state: "running", progress });
  for (const part of ["record", "state", "targets", "progress", "ended:0"])
    for (const text of garbage) {
      await here.redis.hset(here.key("roll", record.id), { ...whole, [part]: text });
      expect(await rollouts.get(record.id), `${part}: ${text}`).toBeUndefined();
    }
});
