import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { stateWords } from "../../../src/core/request/stage.ts";
import {
  byTrouble,
  countByStatus,
  firstOf,
  statusSign,
} from "../../../src/fleet/inventory/status-order.ts";

const statuses = ["RUNNING", "STOPPED", "ERROR", "CREATING", "MIGRATING"];
const some = fc.array(
  fc.record({ status: fc.constantFrom(...statuses), name: fc.string({ maxLength: 2 }) }),
  { maxLength: 300 },
);

describe("the order of a list", () => {
  it("puts trouble first, then what changes, then what stands still", () => {
    const all = ["RUNNING", "STOPPED", "REBOOTING", "ERROR"].map((status) => ({
      status,
      name: "x",
    }));
    expect(firstOf(all, 9, byTrouble).map(({ status }) => status)).toEqual([
      "ERROR",
      "REBOOTING",
      "STOPPED",
      "RUNNING",
    ]);
    expect(countByStatus(all)).toBe("1 ERROR, 1 REBOOTING, 1 STOPPED, 1 RUNNING");
  });

  it("is that of sorting, however many are left out", () => {
    fc.assert(
      fc.property(some, fc.integer({ min: 1, max: 40 }), (all, most) => {
        expect(firstOf(all, most, byTrouble)).toEqual(all.toSorted(byTrouble).slice(0, most));
      }),
    );
  });

  it("compares few of a large fleet more than once", () => {
    const all = Array.from({ length: 10_000 }, (_, index) => ({
      status: statuses[index % 3] ?? "",
      name: `vm-${(index * 7919) % 10_000}`,
    }));
    let compared = 0;
    const first = firstOf(all, 50, (a, b) => {
      compared += 1;
      return byTrouble(a, b);
    });
    expect(first).toHaveLength(50);
    expect(compared).toBeLessThan(2 * all.length);
  });
});

describe("words for a status or state", () => {
  it("has a sign for each, and a question mark for what we don't know", () => {
    expect(["RUNNING", "STOPPED", "ERROR", "REBOOTING", "MIGRATING"].map(statusSign)).toEqual([
      "🟢",
      "⚪",
      "🔴",
      "🟡",
      "❔",
    ]);
  });

  it("shows an unknown state as it is", () => {
    expect(stateWords("unclear")).toBe("being checked");
    expect(stateWords("constructor")).toBe("constructor");
  });
});
