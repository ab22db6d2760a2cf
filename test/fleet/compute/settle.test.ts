import { describe, expect, it } from "vitest";
import { commands } from "../../../src/features/index.ts";
import {
  isSettledProjectStatus,
  isSettledVmStatus,
  isTransitional,
  nextPollDelay,
  statusFacts,
} from "../../../src/fleet/compute/compute.ts";
import { isChange } from "../../../src/registry/define.ts";

describe("a status", () => {
  it("is settled or not, and one we don't know is not", () => {
    for (const status of ["RUNNING", "STOPPED", "ERROR"])
      expect(isSettledVmStatus(status)).toBe(true);
    for (const status of [
      "CREATING",
      "REBOOTING",
      "DELETING",
      "MIGRATING",
      "running",
      "",
      "ACTIVE",
    ])
      expect(isSettledVmStatus(status)).toBe(false);
    for (const status of ["ACTIVE", "STOPPED", "ERROR"])
      expect(isSettledProjectStatus(status)).toBe(true);
    for (const status of ["CREATING", "DELETING", "RUNNING"])
      expect(isSettledProjectStatus(status)).toBe(false);
  });

  it("is known by the offers of every command, and none is made in one that passes", () => {
    const offered = commands.flatMap((one) =>
      isChange(one) && one.on === "vm" ? (one.offeredIn ?? []) : [],
    );
    expect(offered.length).toBeGreaterThan(5);
    expect(offered.filter((status) => !isSettledVmStatus(status))).toEqual([]);
  });

  it("alarms, runs or is stopped as its name says; one we don't know does nothing of that", () => {
    const facts = (status: string) => {
      const { sign, isAlarming, isRunning, isStopped } = statusFacts(status);
      return [sign, isAlarming && "alarm", isRunning && "runs", isStopped && "stopped"].filter(
        Boolean,
      );
    };
    expect(facts("ERROR")).toEqual(["🔴", "alarm"]);
    expect(facts("RUNNING")).toEqual(["🟢", "runs"]);
    expect(facts("ACTIVE")).toEqual(["🟢", "runs"]);
    expect(facts("STOPPED")).toEqual(["⚪", "stopped"]);
    for (const status of ["CREATING", "REBOOTING", "DELETING"])
      expect(facts(status)).toEqual(["🟡"]);
    for (const status of ["MIGRATING", "constructor", "", "running"])
      expect(facts(status)).toEqual(["❔"]);
  });

  it("is transitional when neither a VM nor a project stays in it", () => {
    for (const status of ["CREATING", "REBOOTING", "DELETING", "MIGRATING", ""])
      expect(isTransitional(status)).toBe(true);
    for (const status of ["RUNNING", "STOPPED", "ERROR", "ACTIVE"])
      expect(isTransitional(status)).toBe(false);
  });
});

const next = (sinceStartMs: number) => nextPollDelay({ firstMs: 500, maxMs: 15_000, sinceStartMs });

describe("the next poll", () => {
  it("comes quickly at first, then a quarter of the wait later, never later than the most", () => {
    expect([next(0), next(500), next(1500)]).toEqual([500, 500, 500]);
    expect([next(2000), next(8000), next(40_000), next(600_000)]).toEqual([
      500, 2000, 10_000, 15_000,
    ]);
  });

  it("makes few polls of a long wait", () => {
    let sinceStartMs = 0;
    let polls = 0;
    while (sinceStartMs < 900_000) {
      sinceStartMs += nextPollDelay({ firstMs: 500, maxMs: 15_000, sinceStartMs });
      polls += 1;
    }
    expect(polls).toBeLessThan(80);
  });
});
