import { describe, expect, it } from "vitest";
import { commands } from "../../src/features/index.ts";
import type { Command } from "../../src/registry/define.ts";
import { commands as standIns } from "../support/commands.ts";

/** The facts about a command that the core decides by. Words and the feature's own work are left out. */
function decidedBy(command: Command) {
  const { class: weight, aliases = [], roles } = command;
  if (command.kind === "read") {
    const { approversToo, asRequest } = command;
    const isRequestable = asRequest !== undefined;
    return { weight, aliases, roles, approversToo, isRequestable };
  }
  const { on, protect, minApprovals, safetyFirst } = command;
  const { snapshot, attestAfter } = command.on === "vm" ? command : {};
  const hasSafety = safetyFirst !== undefined;
  return { weight, aliases, roles, on, protect, minApprovals, snapshot, attestAfter, hasSafety };
}

const argsOf = ({ args }: Command) => Object.keys(args.shape);

/** A stand-in outlives its feature: where a feature was taken away, there is nothing to compare it with. */
const pairs = standIns.flatMap((standIn) => {
  const real = commands.find(({ name }) => name === standIn.name);
  return real !== undefined && real !== standIn ? [{ name: standIn.name, standIn, real }] : [];
});

describe("a stand-in for a feature's command in tests of the core", () => {
  it.each(pairs)("is to the core what /$name is", ({ standIn, real }) => {
    expect(decidedBy(standIn)).toEqual(decidedBy(real));
    expect(argsOf(real)).toEqual(expect.arrayContaining(argsOf(standIn)));
  });
});
