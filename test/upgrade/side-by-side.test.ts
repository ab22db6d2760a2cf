import { afterAll, beforeAll, it } from "vitest";
import { isKept, lineOf } from "../faults/check/checker.ts";
import { pendingApprovals, press, voting } from "../faults/people/approvals.ts";
import { askEach, fresh } from "../faults/rows/row.ts";
import {
  beginRollout,
  endsRight,
  numbered,
  rolloutUntil,
} from "../faults/rows/rollouts/rollout-stage.ts";
import { startStage } from "../faults/stage/stage.ts";
import { unpackRelease } from "./release.ts";

let older: Awaited<ReturnType<typeof unpackRelease>>;
beforeAll(async () => {
  older = await unpackRelease("592711f");
});
afterAll(() => older[Symbol.asyncDispose]());

/** 17 requests on a VM each, stops with an approval, and a rollout of three. */
const firstHalf = ["start", "restart", "stop", "start", "restart", "start", "restart", "start"];
const secondHalf = [...firstHalf, "restart"];
const named = (verbs: readonly string[]) => verbs.map((verb) => `vm ${verb}`);
const ofRollout = numbered(17, 20);

/**
 * Real processes of the version before and of this one on one Redis, as they are while processes are replaced. The worker is
 * killed with calls on the wire; in its place, with its directory, comes another of its version, or, for the way back, one
 * of the older version.
 */
it.concurrent.for([
  { who: "an older worker under a new gateway, killed and started again", old: "worker" },
  {
    who: "a new worker under an older gateway, killed and replaced by an older one",
    old: "gateway",
  },
] as const)(
  "20 requests end once each and are told once: $who",
  { timeout: 90_000 },
  async ({ old }, { expect }) => {
    const { script } = older;
    const build = (role: "gateway" | "worker") => (role === old ? { script } : {});
    await using stage = await startStage({
      workers: 0,
      gateways: 0,
      vms: 20,
      policy: voting,
      direct: true,
    });
    const [gateway, worker] = await Promise.all([
      stage.addBot("gateway", { slot: "gateway", ...build("gateway") }),
      stage.addBot("worker", { slot: "worker", ...build("worker") }),
    ]);
    expect(gateway.commands).not.toEqual(worker.commands);
    await stage.connected(1);
    const take = fresh(stage);
    await stage.service.weather({ match: "writes", slowMs: 120 });
    await worker.arm({ point: "send", do: "kill", nth: 6, afterMs: 40 });
    const rollout = await beginRollout(stage, ofRollout, { failures: 3 });
    await askEach(stage, take, named(firstHalf));
    await press(stage, "amir", (await pendingApprovals(stage, 1))[0]);
    await worker.exited;
    stage.faults += 1;
    await stage.addBot("worker", { slot: "worker", script });
    await askEach(stage, take, named(secondHalf));
    await press(stage, "amir", (await pendingApprovals(stage, 1))[0]);

    await rolloutUntil(stage, rollout, ({ isFinal }) => isFinal);
    const journal = await stage.quiet();
    const verdict = await stage.check();
    expect(verdict.findings, lineOf(verdict)).toEqual([]);
    expect(isKept(verdict, "no trace"), lineOf(verdict)).toBe(true);
    expect(journal).toHaveLength(20);
    const rolled = await endsRight(stage, rollout, ofRollout);
    expect(rolled.filter(([, holds]) => !holds).map(([what]) => what)).toEqual([]);
    // Neither the ledger of another version nor its claims alarm anyone
    expect(await stage.redis.get(`{${stage.namespace}}:freeze`)).toBeNull();
  },
);
