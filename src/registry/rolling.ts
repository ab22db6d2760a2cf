import * as z from "zod";
import { flagOnly, rollingOnly, wholeNumber } from "./arguments.ts";
import type { Command, CommandClass } from "./define.ts";
import { argumentsOf } from "./usage.ts";

/** How a command goes over many targets. */
export interface Rolling {
  /** How many may be under way at once. */
  maxUnavailable: number;
  /** The first one goes alone, and the others only when it ended well. */
  canary: boolean;
  /** After so many that did not end well, no further one begins. */
  stopOnFailure: number;
}

/** The flags of every command that takes several VMs. They say how to go about it, not what to do with each. */
export const rollingArgs = {
  maxUnavailable: flagOnly(
    rollingOnly(
      z
        .string()
        .regex(/^(?:[1-9]\d{0,3}|(?:[1-9]\d?|100)%)$/, {
          error: "must be a whole number from 1, or a percentage like 10%",
        })
        .optional()
        .describe("how many may be under way at once: a number or a percentage"),
    ),
  ),
  canary: flagOnly(
    rollingOnly(
      z
        .boolean()
        .optional()
        .describe("the first one goes alone; the others follow if it ends well"),
    ),
  ),
  stopOnFailure: flagOnly(
    rollingOnly(
      wholeNumber(1000)
        .optional()
        .describe("stop after so many that failed; by default after the first"),
    ),
  ),
};

/** More than so many at once are too many for what interrupts a service, unless a person says otherwise. */
const fewAtOnce = 3;

/** The options for `count` targets, from arguments or from the words of a form; what can't be read counts as not said. */
export function rollingOf(
  command: { class: CommandClass },
  args: { maxUnavailable?: unknown; canary?: unknown; stopOnFailure?: unknown },
  count: number,
): Rolling {
  return {
    maxUnavailable: mostAtOnce(command, args.maxUnavailable, count),
    canary: args.canary === true,
    stopOnFailure: Math.max(1, Math.trunc(Number(args.stopOnFailure ?? 1)) || 1),
  };
}

/** A percentage is rounded down, so that it is never more than was said, but one is always under way. */
function mostAtOnce(command: { class: CommandClass }, wanted: unknown, count: number): number {
  if (typeof wanted !== "string")
    return command.class === "disrupt" && count > fewAtOnce ? 1 : count;
  const number = Number.parseInt(wanted, 10);
  const most = wanted.endsWith("%") ? Math.floor((count * number) / 100) : number;
  return Math.min(Math.max(1, most), count);
}

/** Whether a command takes several targets at all. */
export function isRollable(command: Command): boolean {
  return command.kind === "change" && argumentsOf(command).some(({ isRolling }) => isRolling);
}

/** What is done with each target: the input without how to go over many. */
export function withoutRolling(
  command: Command,
  input: Record<string, unknown>,
): Record<string, unknown> {
  const rolling = new Set(
    argumentsOf(command).flatMap(({ key, isRolling }) => (isRolling ? [key] : [])),
  );
  return Object.fromEntries(Object.entries(input).filter(([key]) => !rolling.has(key)));
}
