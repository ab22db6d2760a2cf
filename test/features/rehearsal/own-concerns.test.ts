import { describe, expect, it } from "vitest";
import { resize } from "../../../src/commands/vm/resize.ts";
import { restart } from "../../../src/commands/vm/restart.ts";
import { start } from "../../../src/commands/vm/start.ts";
import { stop } from "../../../src/commands/vm/stop.ts";
import { earlierRuns } from "../../../src/features/rehearsal/earlier-runs.ts";
import {
  concernOfLocks,
  concernOfPins,
  concernOfStatus,
} from "../../../src/features/rehearsal/own-concerns.ts";
import { plainWords } from "../../../src/messages/markdown.ts";
import type { RequestRecord } from "../../../src/core/request/record.ts";
import type { Stage } from "../../../src/core/request/stage.ts";
import type { ChangeCommand, Target } from "../../../src/registry/define.ts";
import type { Concern } from "../../../src/talk/contributions.ts";
import { called, stageOf, storedIn, vmTarget } from "../../core/asking.ts";

const target = vmTarget("web-2");
const said = (concern: Concern | undefined) =>
  concern && `${concern.effect}: ${plainWords(concern.why)}`;

const considered = (command: ChangeCommand, of: Target) => ({
  command,
  targets: [of],
  input: { vms: [of.id] },
});
const statusOf = (command: ChangeCommand, status: string, isRefused = false) => {
  const of = vmTarget("web-2", { status });
  return said(concernOfStatus(considered(command, of), of, { status, isRefused }));
};

const requestOf = (stage: Stage, over: Partial<RequestRecord> = {}, changedAt = 0) =>
  storedIn(stage, {
    changedAt,
    record: {
      id: "r-first",
      command: "vm stop",
      target,
      requester: { id: "U0AMIR", teamId: "T0OURS", name: "amir" },
      ...over,
    } as RequestRecord,
  });

describe("what is known of a target before a change", () => {
  it("is a status that doesn't allow it, or in which nothing is left to do", () => {
    expect(statusOf(restart, "STOPPED")).toBe("fails: is stopped");
    expect(statusOf(start, "RUNNING")).toBe("note: is already as wanted: nothing would be sent");
    expect(statusOf(stop, "RUNNING")).toBeUndefined();
  });

  it("is that it is in ERROR, and that the compute service refuses the change because of that", () => {
    expect(statusOf(restart, "ERROR")).toBe("note: is in ERROR");
    expect(statusOf(restart, "ERROR", true)).toBe(
      "fails: is in ERROR, and the compute service refused the last restart because of that",
    );
  });

  it("is a lock behind an unknown outcome, a change that comes first, and a request that waits", () => {
    const lockedBy = (stage: Stage, over: Partial<RequestRecord> = {}) =>
      concernOfLocks(target, [requestOf(stage, over)], [stop]).map(said);
    expect(lockedBy(stageOf("unknown"))).toEqual([
      "fails: is locked: the outcome of the stop that amir requested (r-first) is unknown until someone records it",
    ]);
    expect(lockedBy(stageOf("accepted"))).toEqual([
      "note: is changing: the stop that amir requested (r-first) is running and comes first",
    ]);
    expect(lockedBy(stageOf("draft"))).toEqual([
      "note: has another request: the stop that amir requested (r-first) waits for approval",
    ]);
    expect(lockedBy(stageOf("done"))).toEqual([]);
    expect(lockedBy(stageOf("unknown"), { target: vmTarget("web-1") })).toEqual([]);
  });

  it("is that it is pinned, where the change can change what it measures", () => {
    expect(said(concernOfPins(considered(resize, target), target))).toBe(
      "halts: is pinned, and this can change its measurement: then attestation fails until the pin is updated",
    );
    expect(concernOfPins(considered(restart, target), target)).toBeUndefined();
  });
});

describe("earlier runs of a command", () => {
  const run = (vm: string, tookMs: number, stage: Partial<Parameters<typeof stageOf<"done">>[1]>) =>
    requestOf(
      stageOf("done", { ...called({ sentAt: 1000 }), ...stage }),
      { target: vmTarget(vm) },
      1000 + tookMs,
    );

  it("are those of the target, and only where it had none those in its project", () => {
    const all = [run("web-1", 9000, {}), run("web-2", 5000, {})];
    expect(earlierRuns(all, stop, [target])).toEqual({ on: "targets", tookMs: [5000] });
    const other = [vmTarget("web-3")];
    expect(earlierRuns(all, stop, other)).toEqual({ on: "projects", tookMs: [9000, 5000] });
    expect(earlierRuns(all, restart, other).tookMs).toEqual([]);
  });

  it("count only where the end was seen: not what was already so, nor what a person recorded", () => {
    const decidedBy = { id: "U0ADA", name: "ada" };
    const all = [
      run("web-2", 1, { already: true }),
      run("web-2", 900_000, { decidedBy }),
      requestOf(stageOf("failed", called({ sentAt: 1000 })), {}, 2000),
    ];
    expect(earlierRuns(all, stop, [target]).tookMs).toEqual([]);
  });
});
