import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  nextStep,
  isFinalState,
  type Outcome,
  requestIdOf,
  afterControl,
  type RolloutProgress,
  type StoredRollout,
} from "../../../src/features/rollouts/rollout.ts";
import { vmTarget } from "../../core/asking.ts";

const fresh: RolloutProgress = { next: 0, open: [], ok: 0, already: 0, failed: 0 };

function rollout(
  total: number,
  options: Partial<StoredRollout["record"]["options"]> = {},
  over: { state?: StoredRollout["state"]; progress?: Partial<RolloutProgress> } = {},
): Pick<StoredRollout, "record" | "targets" | "state" | "progress"> {
  return {
    record: {
      id: "roll-test",
      total,
      options: { maxUnavailable: 1, canary: false, stopOnFailure: 1, ...options },
    } as StoredRollout["record"],
    targets: Array.from({ length: total }, (_, n) => vmTarget(`vm-${n}`)),
    state: over.state ?? "running",
    progress: { ...fresh, ...over.progress },
  };
}

const step = (at: ReturnType<typeof rollout>, ended: readonly Outcome[] = []) =>
  nextStep(at, ended);
const outcome = (n: number, is: Outcome["is"], over: Partial<Outcome> = {}): Outcome => ({
  n,
  is,
  request: requestIdOf("roll-test", n),
  ...over,
});
const open = (...places: number[]) =>
  places.map((n) => ({ n, request: requestIdOf("roll-test", n) }));

describe("the next step of a rollout", () => {
  it("starts no more than may be in progress", () => {
    expect(step(rollout(5, { maxUnavailable: 2 })).begins).toEqual(open(0, 1));
    const going = rollout(5, { maxUnavailable: 2 }, { progress: { next: 2, open: open(0, 1) } });
    expect(step(going).begins).toEqual([]);
    expect(step(going, [outcome(0, "ok")])).toMatchObject({
      state: "running",
      begins: open(2),
      progress: { next: 3, open: open(1, 2), ok: 1 },
    });
  });

  it("runs the canary alone, and stops when it fails, whatever else is allowed", () => {
    const options = { maxUnavailable: 4, canary: true, stopOnFailure: 3 };
    expect(step(rollout(9, options)).begins).toEqual(open(0));
    const alone = rollout(9, options, { progress: { next: 1, open: open(0) } });
    expect(step(alone).begins).toEqual([]);
    expect(step(alone, [outcome(0, "already")]).begins).toEqual(open(1, 2, 3, 4));
    expect(step(alone, [outcome(0, "failed", { why: "it broke" })])).toMatchObject({
      state: "failed",
      why: "the canary vm-0: it broke",
    });
  });

  it("waits for targets in progress before it ends, and starts none meanwhile", () => {
    const going = rollout(9, { maxUnavailable: 3 }, { progress: { next: 3, open: open(0, 1, 2) } });
    const ending = step(going, [outcome(1, "unknown", { why: "nobody knows" })]);
    expect(ending).toMatchObject({ state: "ending", begins: [], why: "vm-1: nobody knows" });
    const last = step({ ...going, ...ending }, [outcome(0, "ok"), outcome(2, "cancelled")]);
    expect(last).toMatchObject({ state: "failed", progress: { ok: 1, failed: 1, open: [] } });
  });

  it("stops at a VM that fails attestation, even when failures are allowed", () => {
    const going = rollout(9, { stopOnFailure: 5 }, { progress: { next: 1, open: open(0) } });
    expect(step(going, [outcome(0, "failed")]).state).toBe("running");
    expect(step(going, [outcome(0, "failed", { isUntrusted: true })]).state).toBe("failed");
  });

  it("starts a target again, with a new request, after it was canceled during a pause", () => {
    const paused = rollout(3, {}, { state: "paused", progress: { next: 1, open: open(0) } });
    const returned = step(paused, [outcome(0, "returned")]);
    expect(returned).toMatchObject({
      state: "paused",
      progress: { again: [0], open: [], failed: 0 },
    });
    const resumed = step({ ...paused, progress: returned.progress, state: "running" });
    expect(resumed.begins).toEqual([{ n: 0, request: requestIdOf("roll-test", 0, 1) }]);
    expect(resumed.progress).toMatchObject({ next: 1 });
    expect(resumed.progress.again).toEqual([]);
  });

  it("touches every target exactly once and never more at a time than allowed, however they end and whatever people do", () => {
    const choices = fc.record({
      total: fc.integer({ min: 1, max: 30 }),
      maxUnavailable: fc.integer({ min: 1, max: 30 }),
      canary: fc.boolean(),
      stopOnFailure: fc.integer({ min: 1, max: 5 }),
      luck: fc.array(
        fc.constantFrom(
          "ok",
          "ok",
          "ok",
          "already",
          "failed",
          "unknown",
          "pause",
          "resume",
          "stop",
        ),
        { maxLength: 80 },
      ),
    });
    fc.assert(
      fc.property(choices, ({ total, luck, ...options }) => {
        let at = rollout(total, options);
        const begun: number[] = [];
        for (const event of [
          ...luck,
          ...Array<"resume" | "ok">(2 * total + 2).fill("ok"),
          "resume",
          ...Array<"ok">(2 * total + 2).fill("ok"),
        ] as const) {
          if (isFinalState(at.state)) break;
          if (event === "pause" || event === "resume" || event === "stop") {
            at = { ...at, ...afterControl(at, event, { id: "U0", name: "olivia" }) };
            continue;
          }
          const first = at.progress.open[0];
          const next = step(at, first ? [outcome(first.n, event)] : []);
          if (at.state !== "running") expect(next.begins).toEqual([]);
          begun.push(...next.begins.map(({ n }) => n));
          at = { ...at, state: next.state, progress: next.progress };
          expect(at.progress.open.length).toBeLessThanOrEqual(
            options.canary && at.progress.next === 1 ? 1 : options.maxUnavailable,
          );
        }
        expect(begun).toEqual(Array.from(begun, (_, n) => n));
        expect(isFinalState(at.state)).toBe(true);
        if (at.state === "done") expect(begun).toHaveLength(total);
        expect(at.progress.failed).toBeLessThan(options.stopOnFailure + options.maxUnavailable);
      }),
      { numRuns: 300 },
    );
  });
});
