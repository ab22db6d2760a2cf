import { array, assert, boolean, constantFrom, property, string, tuple } from "fast-check";
import { describe, expect, it } from "vitest";
import { createNameIndex } from "../../../src/fleet/inventory/names.ts";
import { compareNames } from "../../../src/text/compare-names.ts";

const word = string({ unit: constantFrom("a", "b", "-", "C", "ç"), minLength: 1, maxLength: 5 });
const changes = array(tuple(boolean(), word), { maxLength: 900, size: "max" });

/** The plain way: looks at each, and sorts them. */
function containing(names: ReadonlySet<string>, typed: string, most: number): string[] {
  const wanted = typed.toLowerCase();
  const rankOf = (name: string) => {
    const at = name.indexOf(wanted);
    if (at <= 0) return at;
    return "-_. /".includes(name.charAt(at - 1)) ? 1 : 2;
  };
  const found = [...names].filter((name) => rankOf(name) >= 0);
  const order = (a: string, b: string) => rankOf(a) - rankOf(b) || compareNames(a, b);
  return found.toSorted(order).slice(0, most);
}

describe("thousands of names that come and go", () => {
  it("are found by each part of them, as if each were looked at", () => {
    assert(
      property(changes, word, (all, typed) => {
        const names = createNameIndex();
        const kept = new Set<string>();
        for (const [isAdded, name] of all) {
          const key = name.toLowerCase();
          if (isAdded) names.add(name, key);
          else names.remove(name, key);
          if (isAdded) kept.add(key);
          else kept.delete(key);
        }
        for (const most of [3, 1000])
          expect(names.containing(typed, most)).toEqual(containing(kept, typed, most));
      }),
      { numRuns: 60 },
    );
  });

  it("are guessed with two slips, also once most are gone", () => {
    const names = createNameIndex();
    for (let n = 0; n < 3000; n++) names.add(`worker-${n}`, `w${n}`);
    // Far from its place in order, and near it
    expect(names.near("wroker-1234", 1)).toEqual(["worker-1234"]);
    expect(names.near("worker-123x4", 1)).toEqual(["worker-1234"]);
    for (let n = 0; n < 3000; n++) if (n % 100 !== 0) names.remove(`worker-${n}`, `w${n}`);
    expect(names.containing("worker", 100)).toHaveLength(30);
    expect(names.containing("worker", 4)).toEqual([0, 100, 200, 300].map((n) => `worker-${n}`));
    expect(names.near("worker-21xx", 10)).toEqual(["worker-2100"]);
    expect(names.near("wroker-2100x", 10)).toEqual(["worker-2100"]);
    expect(names.near("wroker-21xx", 10)).toEqual([]);
  });
});
