import { expect, it } from "vitest";
import * as z from "zod";
import { changesBetween } from "../../src/config/changing-policy.ts";
import { emptyPolicy, parsePolicy } from "../../src/config/policy-file.ts";
import { callersIn, defineSection, sectionOf } from "../../src/config/policy-section.ts";
import { section } from "../../src/config/policy-values.ts";
import { channelsNamed } from "../../src/config/named-in-policy.ts";

const parcels = defineSection({
  name: "parcels",
  schema: z.record(z.string(), section({ shelf: z.int().default(1) })).default({}),
  nonsenseIn: (all) =>
    Object.entries(all).flatMap(([name, { shelf }]) =>
      shelf > 3 ? [{ path: ["parcels", name, "shelf"], message: "is too high" }] : [],
    ),
  callersIn: (all) =>
    Object.keys(all).map((name) => ({
      name,
      caller: `parcels.${name}`,
      brings: "parcel",
      channel: "C0PARCELS",
    })),
});
const other = defineSection({ name: "letters", schema: z.array(z.string()).default(["one"]) });

function read(text: string, sections = [parcels, other] as const) {
  const found = parsePolicy(text, "gatehouse.yml", { operations: [], sections });
  return "problems" in found ? found.problems : found.policy;
}

it("a feature's section of the policy is read with its defaults, also where the file doesn't have it", () => {
  const policy = read("parcels: { red: { shelf: 2 }, blue: {} }");
  expect(sectionOf(policy, parcels)).toEqual({ red: { shelf: 2 }, blue: { shelf: 1 } });
  expect(sectionOf(policy, other)).toEqual(["one"]);
  expect(sectionOf(emptyPolicy(), parcels)).toEqual({});
});

it("stays with copies of a policy, and names callers and their channels", () => {
  const policy = read("parcels: { red: {} }");
  if (!("access" in policy)) throw new Error(policy.join());
  const copy = { ...policy, protect: [] };
  expect(callersIn(copy).map(({ caller }) => caller)).toEqual(["parcels.red"]);
  expect(channelsNamed(copy)).toEqual(["C0PARCELS"]);
});

it("a feature's section of the policy is refused where it makes no sense, and when it is misspelt or no feature has it", () => {
  expect(read("parcels: { red: { shelf: 4 } }")).toEqual([
    "gatehouse.yml line 1: parcels.red.shelf is too high",
  ]);
  expect(read("parcels: { red: { shef: 4 } }")).toEqual([
    "gatehouse.yml line 1: parcels.red.shef isn't known; did you mean shelf?",
  ]);
  expect(read("parcles: {}")).toEqual([
    "gatehouse.yml line 1: parcles isn't known; did you mean parcels?",
  ]);
  const [problem] = parsePolicyWithout("parcels: {}");
  expect(problem).toMatch(
    /^gatehouse\.yml line 1: parcels isn't known; known are version, access,/,
  );
});

it("a feature's section of the policy is one of the differences between two files", () => {
  const [before, after] = [read("parcels: { red: {} }"), read("parcels: { red: { shelf: 3 } }")];
  if (!("access" in before) || !("access" in after)) throw new Error("one has problems");
  expect(changesBetween(before, after)).toEqual([
    { place: "parcels.red.shelf", removed: ["1"], added: ["3"], isReplaced: true, waits: false },
  ]);
});

function parsePolicyWithout(text: string): readonly string[] {
  const found = parsePolicy(text, "gatehouse.yml", { operations: [], sections: [] });
  return "problems" in found ? found.problems : [];
}
