import * as z from "zod";
import { type Command, type CommandClass, wholeNumber } from "../../registry/define.ts";
import { mayNameSeveral } from "../../registry/invocation.ts";

/** Options of a rollout, as in Kubernetes. */
export interface Rolling {
  /** How many VMs can be in progress at once. */
  maxUnavailable: number;
  /** Start with one VM; continue only if it succeeds. */
  canary: boolean;
  /** After this many failures no other VM starts. */
  stopOnFailure: number;
}

const flags = { isFlag: true, isRolling: true };

/** The flags of every change that can name several VMs. */
export const rollingArgs = {
  maxUnavailable: z
    .string()
    .regex(/^(?:[1-9]\d{0,3}|(?:[1-9]\d?|100)%)$/, {
      error: "must be a whole number from 1, or a percentage like 10%",
    })
    .optional()
    .meta({ ...flags, description: "how many VMs can be in progress: a number or a percentage" }),
  canary: z
    .boolean()
    .optional()
    .meta({ ...flags, description: "start with one VM; continue only if it succeeds" }),
  stopOnFailure: wholeNumber(1000)
    .optional()
    .meta({ ...flags, description: "stop after this many failures; by default after the first" }),
};

/** The options for `count` targets, from arguments or a form; invalid ones get their default. */
export function rollingOf(
  command: { class: CommandClass },
  args: { maxUnavailable?: unknown; canary?: unknown; stopOnFailure?: unknown },
  count: number,
): Rolling {
  return {
    maxUnavailable: maxAtOnce(command, args.maxUnavailable, count),
    canary: args.canary === true,
    stopOnFailure: Math.max(1, Math.trunc(Number(args.stopOnFailure ?? 1)) || 1),
  };
}

/** What interrupts goes one by one unless the requester says otherwise. A percentage is rounded down, to at least one. */
function maxAtOnce(command: { class: CommandClass }, wanted: unknown, count: number): number {
  if (typeof wanted !== "string") return command.class === "disrupt" ? 1 : count;
  const number = Number.parseInt(wanted, 10);
  const most = wanted.endsWith("%") ? Math.floor((count * number) / 100) : number;
  return Math.min(Math.max(1, most), count);
}

/** The flags that this command has of rollouts. */
export const rollingFlags = (command: Command) =>
  mayNameSeveral(command) ? rollingArgs : undefined;
