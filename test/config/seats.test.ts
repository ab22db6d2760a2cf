import { describe, expect, it } from "vitest";
import { couldApprove } from "../../src/config/seats.ts";

const need = (required: number, ...from: string[]) => ({ required, from });

describe("who could approve", () => {
  it.each([
    ["one of two", [need(1, "U1", "U2")], true],
    ["two of one", [need(2, "U1")], false],
    [
      "each counts once: one for each of two needs that name the same",
      [need(1, "U1"), need(1, "U1")],
      false,
    ],
    [
      "the first gives way where the second has nobody else",
      [need(1, "U1", "U2"), need(1, "U1")],
      true,
    ],
    ["nobody is named", [need(1)], false],
    ["anybody may, so nothing is lacking", [need(3, "*")], true],
    ["anybody may for one need, and nobody can for the other", [need(1, "*"), need(1)], false],
    ["nothing is needed", [], true],
  ] as const)("%s", (_what, needs, isEnough) => {
    const found = couldApprove(needs, ({ from }) => (from.includes("*") ? undefined : from));
    expect(found.isEnough).toBe(isEnough);
    expect(found.lacking.length > 0).toBe(!isEnough);
  });

  it("names those who could, and the need that lacks somebody", () => {
    const needs = [need(1, "U1"), need(2, "U2")];
    expect(couldApprove(needs, ({ from }) => from)).toEqual({
      able: ["U1", "U2"],
      required: 3,
      isEnough: false,
      lacking: [needs[1]],
    });
  });
});
