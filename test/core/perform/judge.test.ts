import { describe, expect, it } from "vitest";
import type { Vm } from "../../../src/fleet/compute/compute.ts";
import type { Effect } from "../../../src/registry/define.ts";
import {
  type Call,
  type PolledStage,
  type Stage,
  callOf,
  isPolled,
  readsOf,
} from "../../../src/core/request/stage.ts";
import {
  type Judged,
  type Read,
  judgeAccepted,
  judgeSending,
  judgeUnclear,
} from "../../../src/core/perform/judge.ts";
import { called, stageOf } from "../asking.ts";

const timing = {
  quiesceMs: 1000,
  stableGapMs: 100,
  transitionGapMs: 25,
  settleDeadlineMs: 10_000,
  restartMarkMs: 3000,
};

const vm = (status: string, more: Partial<Vm> = {}): Vm => ({
  id: "vm-1",
  projectId: "p-1",
  name: "web-1",
  status,
  createdAt: "2026-01-01T00:00:00Z",
  ...more,
});

const stop: Effect<Vm, never> = {
  wanted: (now) => now?.status === "STOPPED",
  untouched: (now, before) => now?.status === before?.status,
};
const restart: Effect<Vm, never> = {
  wanted: (now) => now?.status === "RUNNING",
  mark: (now) => now?.status === "REBOOTING",
  needsMark: true,
};

function judge(stage: PolledStage, read: Read): Judged {
  switch (stage.state) {
    case "sending":
      return judgeSending(stage, read);
    case "accepted":
      return judgeAccepted(stage, read).to;
    default:
      return judgeUnclear(stage, read).to;
  }
}

const isPolledStage = (stage: Stage): stage is PolledStage => isPolled(stage.state);

/**
 * Judges reads, each `[at, VM]`, one after the other. Returns the stage after the last read, or
 * after the first one that moves the request to another state.
 */
function judgeAll(
  effect: Effect<Vm, never>,
  from: PolledStage,
  reads: readonly (readonly [at: number, seen: Vm | undefined])[],
): Judged & { at: number } {
  let stage = from;
  let judgedAt = 0;
  for (const [at, seen] of reads) {
    const to = judge(stage, { effect: effect as never, args: {}, seen, at, timing });
    if (!isPolledStage(to) || to.state !== from.state) return { ...to, at };
    stage = to;
    judgedAt = at;
  }
  return { ...stage, at: judgedAt };
}

const accepted = (before: Vm) =>
  stageOf("accepted", called({ before, sentAt: 0, answer: { class: "accepted" } }));
const unclear = (before: Vm, over: Partial<Call> = {}) =>
  stageOf("unclear", called({ before, sentAt: 0, ...over }));

describe("judging what became of a request", () => {
  it("says done only after two equal reads apart in time", () => {
    const sent = accepted(vm("RUNNING"));
    expect(judgeAll(stop, sent, [[10, vm("STOPPED")]]).state).toBe("accepted");
    expect(
      judgeAll(stop, sent, [
        [10, vm("STOPPED")],
        [60, vm("STOPPED")],
      ]).state,
    ).toBe("accepted");
    expect(
      judgeAll(stop, sent, [
        [10, vm("STOPPED")],
        [120, vm("STOPPED")],
      ]).state,
    ).toBe("done");
  });

  it("doesn't take RUNNING for a restart that nobody saw", () => {
    const sent = accepted(vm("RUNNING"));
    const seen = judgeAll(restart, sent, [
      [100, vm("RUNNING")],
      [2900, vm("RUNNING")],
    ]);
    expect(seen.state).toBe("accepted");
    const late = judgeAll(restart, sent, [
      [100, vm("RUNNING")],
      [3100, vm("RUNNING")],
    ]);
    expect(late.state).toBe("unclear");
  });

  it("takes a REBOOTING seen while the call was still on the wire as the proof of a restart", () => {
    const sending = stageOf("sending", called({ before: vm("RUNNING") }));
    const during = judgeAll(restart, sending, [[50, vm("REBOOTING")]]);
    expect(callOf(during)?.mark).toEqual({ status: "REBOOTING", at: 50 });
    const seen = stageOf("unclear", called(callOf(during), readsOf(during)));
    const after = judgeAll(restart, seen, [
      [200, vm("RUNNING")],
      [350, vm("RUNNING")],
    ]);
    expect(after.state).toBe("done");
  });

  it("needs less time between two equal reads after REBOOTING was read, and starts anew when it flaps", () => {
    const sent = accepted(vm("RUNNING"));
    const flaps = [
      [10, vm("REBOOTING")],
      [20, vm("RUNNING")],
      [40, vm("RUNNING")],
      [42, vm("REBOOTING")],
      [50, vm("RUNNING")],
      [70, vm("RUNNING")],
    ] as const;
    expect(judgeAll(restart, sent, flaps).state).toBe("accepted");
    const stands = judgeAll(restart, sent, [...flaps, [76, vm("RUNNING")]]);
    expect([stands.state, stands.at]).toEqual(["done", 76]);
  });

  it("sees equal reads where only updated_at moves, as others move it", () => {
    const sent = accepted(vm("RUNNING"));
    const looks = [10, 120].map((at) => [at, vm("STOPPED", { updatedAt: String(at) })] as const);
    expect(judgeAll(stop, sent, looks).state).toBe("done");
  });

  it("takes what isn't returned for done only after an accepted call", () => {
    const hidden: Effect<Vm, never> = { wanted: () => true, hides: () => true };
    const looks = [10, 120, 1_200, 1_400].map((at) => [at, vm("RUNNING")] as const);
    expect(judgeAll(hidden, accepted(vm("RUNNING")), looks).state).toBe("done");
    expect(judgeAll(hidden, unclear(vm("RUNNING")), looks).state).not.toBe("done");
  });

  it("proves that nothing happened only with two reads after the time of quiet", () => {
    const sent = unclear(vm("RUNNING"), { endedAt: 500 });
    const early = [
      [600, vm("RUNNING")],
      [900, vm("RUNNING")],
      [1050, vm("RUNNING")],
    ] as const;
    expect(judgeAll(stop, sent, early).state).toBe("unclear");
    const quiet = judgeAll(stop, sent, [...early, [1200, vm("RUNNING")]]);
    expect(quiet.state).toBe("not-applied");
  });

  it("calls a restart without a mark unknown after the time of quiet", () => {
    const sent = unclear(vm("RUNNING"));
    const reads = [
      [1050, vm("RUNNING")],
      [1200, vm("RUNNING")],
    ] as const;
    expect(judgeAll(restart, sent, reads).state).toBe("unknown");
  });

  it("never takes an accepted change for one that didn't happen", () => {
    const sent = accepted(vm("RUNNING"));
    const late = judgeAll(stop, sent, [
      [5000, vm("RUNNING")],
      [10_001, vm("RUNNING")],
    ]);
    expect(late.state).toBe("unclear");
    const seen = stageOf("unclear", called(callOf(late), readsOf(late)));
    const looked = judgeAll(stop, seen, [
      [10_100, vm("RUNNING")],
      [10_300, vm("RUNNING")],
    ]);
    expect(looked.state).toBe("unknown");
  });

  it("finds no stable read while the state flaps, and gives up at the deadline", () => {
    const sent = unclear(vm("STOPPED"));
    const flaps = Array.from(
      { length: 40 },
      (_, n) => [n * 300, vm(n % 2 ? "RUNNING" : "STOPPED")] as const,
    );
    const given = judgeAll(stop, sent, flaps);
    expect(given).toMatchObject({ state: "unknown", at: 10_200 });
  });

  it("reports ERROR as failed once it stands, unless it stood before", () => {
    const error = [
      [10, vm("ERROR")],
      [200, vm("ERROR")],
    ] as const;
    expect(judgeAll(restart, accepted(vm("RUNNING")), error).state).toBe("failed");
    expect(judgeAll(restart, accepted(vm("ERROR")), error).state).toBe("accepted");
  });

  it("concludes nothing from a status it doesn't know", () => {
    const sent = unclear(vm("RUNNING"));
    const odd = [
      [1050, vm("MIGRATING")],
      [1200, vm("MIGRATING")],
    ] as const;
    expect(judgeAll(stop, sent, odd).state).toBe("unclear");
  });

  it("sees that the VM under this id is another one", () => {
    const sent = unclear(vm("RUNNING"));
    const other = vm("STOPPED", { createdAt: "2026-02-02T00:00:00Z" });
    expect(
      judgeAll(stop, sent, [
        [10, other],
        [200, other],
      ]).state,
    ).toBe("unknown");
  });
});
