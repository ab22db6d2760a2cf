import { describe, expect, it } from "vitest";
import { restart } from "../../../src/commands/vm/restart.ts";
import { stop } from "../../../src/commands/vm/stop.ts";
import { earlierRuns } from "../../../src/features/rehearsal/earlier-runs.ts";
import type { RequestRecord } from "../../../src/core/request/record.ts";
import type { Stage } from "../../../src/core/request/stage.ts";
import { called, stageOf, storedIn, vmTarget } from "../../core/asking.ts";

const target = vmTarget("web-2");

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
