import { describe, expect, it } from "vitest";
import type { Vm } from "../../../src/compute/compute.ts";
import type { Effect } from "../../../src/registry/define.ts";
import { type JudgedRead, judge } from "../../../src/requests/perform/poll.ts";

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
  mark: (now, before) =>
    now?.status === "REBOOTING" ||
    (now?.updatedAt !== undefined && now.updatedAt !== before?.updatedAt),
  needsMark: true,
};

/** Feeds reads, each `[at, status]`, and returns the verdict of the last, or of the first that moves. */
function judgeAll(
  effect: Effect<Vm, never>,
  state: "sending" | "accepted" | "unclear",
  progress: Progress,
  reads: readonly (readonly [at: number, seen: Vm | undefined])[],
): JudgedRead & { at: number } {
  let result: JudgedRead & { at: number } = { state, progress, at: 0 };
  for (const [at, seen] of reads) {
    result = {
      ...judge({
        state,
        progress: result.progress,
        effect: effect as never,
        args: {},
        seen,
        at,
        timing,
      }),
      at,
    };
    if (result.state !== state) return result;
  }
  return result;
}

describe("judging what became of a request", () => {
  it("says done only after two equal reads apart in time", () => {
    const progress = { before: vm("RUNNING"), sentAt: 0, answer: { class: "accepted" } };
    expect(judgeAll(stop, "accepted", progress, [[10, vm("STOPPED")]]).state).toBe("accepted");
    expect(
      judgeAll(stop, "accepted", progress, [
        [10, vm("STOPPED")],
        [60, vm("STOPPED")],
      ]).state,
    ).toBe("accepted");
    expect(
      judgeAll(stop, "accepted", progress, [
        [10, vm("STOPPED")],
        [120, vm("STOPPED")],
      ]).state,
    ).toBe("done");
  });

  it("doesn't take RUNNING for a restart that nobody saw", () => {
    const progress = { before: vm("RUNNING"), sentAt: 0, answer: { class: "accepted" } };
    const seen = judgeAll(restart, "accepted", progress, [
      [100, vm("RUNNING")],
      [2900, vm("RUNNING")],
    ]);
    expect(seen.state).toBe("accepted");
    const late = judgeAll(restart, "accepted", progress, [
      [100, vm("RUNNING")],
      [3100, vm("RUNNING")],
    ]);
    expect(late.state).toBe("unclear");
  });

  it("takes a REBOOTING seen while the call was still on the wire as the proof of a restart", () => {
    const during = judgeAll(restart, "sending", { before: vm("RUNNING"), sentAt: 0 }, [
      [50, vm("REBOOTING")],
    ]);
    expect(during.progress.mark).toEqual({ status: "REBOOTING", at: 50 });
    const after = judgeAll(restart, "unclear", during.progress, [
      [200, vm("RUNNING")],
      [350, vm("RUNNING")],
    ]);
    expect(after.state).toBe("done");
  });

  it("needs less time between two equal reads after REBOOTING was read, and starts anew when it flaps", () => {
    const progress = { before: vm("RUNNING"), sentAt: 0, answer: { class: "accepted" } };
    const flaps = [
      [10, vm("REBOOTING")],
      [20, vm("RUNNING")],
      [40, vm("RUNNING")],
      [42, vm("REBOOTING")],
      [50, vm("RUNNING")],
      [70, vm("RUNNING")],
    ] as const;
    expect(judgeAll(restart, "accepted", progress, flaps).state).toBe("accepted");
    const stands = judgeAll(restart, "accepted", progress, [...flaps, [76, vm("RUNNING")]]);
    expect([stands.state, stands.at]).toEqual(["done", 76]);
  });

  it("takes a moved updated_at for a mark where the service gives one", () => {
    const progress = { before: vm("RUNNING", { updatedAt: "1" }), sentAt: 0 };
    const moved = vm("RUNNING", { updatedAt: "2" });
    expect(
      judgeAll(restart, "unclear", progress, [
        [10, moved],
        [200, moved],
      ]).state,
    ).toBe("done");
  });

  it("proves that nothing happened only with two reads after the time of quiet", () => {
    const progress = { before: vm("RUNNING"), sentAt: 0, endedAt: 500 };
    const early = [
      [600, vm("RUNNING")],
      [900, vm("RUNNING")],
      [1050, vm("RUNNING")],
    ] as const;
    expect(judgeAll(stop, "unclear", progress, early).state).toBe("unclear");
    const quiet = judgeAll(stop, "unclear", progress, [...early, [1200, vm("RUNNING")]]);
    expect(quiet.state).toBe("not-applied");
  });

  it("calls a restart without a mark unknown after the time of quiet", () => {
    const progress = { before: vm("RUNNING"), sentAt: 0 };
    const reads = [
      [1050, vm("RUNNING")],
      [1200, vm("RUNNING")],
    ] as const;
    expect(judgeAll(restart, "unclear", progress, reads).state).toBe("unknown");
  });

  it("never takes an accepted change for one that didn't happen", () => {
    const progress = { before: vm("RUNNING"), sentAt: 0, answer: { class: "accepted" } };
    const late = judgeAll(stop, "accepted", progress, [
      [5000, vm("RUNNING")],
      [10_001, vm("RUNNING")],
    ]);
    expect(late.state).toBe("unclear");
    const looked = judgeAll(stop, "unclear", late.progress, [
      [10_100, vm("RUNNING")],
      [10_300, vm("RUNNING")],
    ]);
    expect(looked.state).toBe("unknown");
  });

  it("finds no stable read while the state flaps, and gives up at the deadline", () => {
    const progress = { before: vm("STOPPED"), sentAt: 0 };
    const flaps = Array.from(
      { length: 40 },
      (_, n) => [n * 300, vm(n % 2 ? "RUNNING" : "STOPPED")] as const,
    );
    const given = judgeAll(stop, "unclear", progress, flaps);
    expect(given).toMatchObject({ state: "unknown", at: 10_200 });
  });

  it("reports ERROR as failed once it stands, unless it stood before", () => {
    const accepted = { class: "accepted" };
    const error = [
      [10, vm("ERROR")],
      [200, vm("ERROR")],
    ] as const;
    const fine = { before: vm("RUNNING"), sentAt: 0, answer: accepted };
    expect(judgeAll(restart, "accepted", fine, error).state).toBe("failed");
    const broken = { before: vm("ERROR"), sentAt: 0, answer: accepted };
    expect(judgeAll(restart, "accepted", broken, error).state).toBe("accepted");
  });

  it("concludes nothing from a status it doesn't know", () => {
    const progress = { before: vm("RUNNING"), sentAt: 0 };
    const odd = [
      [1050, vm("MIGRATING")],
      [1200, vm("MIGRATING")],
    ] as const;
    expect(judgeAll(stop, "unclear", progress, odd).state).toBe("unclear");
  });

  it("sees that the VM under this id is another one", () => {
    const progress = { before: vm("RUNNING"), sentAt: 0 };
    const other = vm("STOPPED", { createdAt: "2026-02-02T00:00:00Z" });
    expect(
      judgeAll(stop, "unclear", progress, [
        [10, other],
        [200, other],
      ]).state,
    ).toBe("unknown");
  });
});
