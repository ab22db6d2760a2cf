import type { ChangeCommand, Effect, Refusal, Seen } from "../../registry/define.ts";
import type { Args } from "../../registry/invocation.ts";
import { parseInput } from "../../registry/parse.ts";
import type { Freeze } from "../request/freeze.ts";
import type { RequestRecord } from "../request/record.ts";
import type { StoredRequest } from "../request/stored-request.ts";

/** A request with its command and parsed arguments. */
export interface Change {
  command: ChangeCommand;
  args: Args;
  effect: Effect<Seen, Args>;
}

/**
 * Parses a request. A process of another release may have written its record: undefined for a
 * command that this one lacks. Throws UserError for arguments that can't be read.
 */
export function changeOf(
  { command: name, input }: Pick<RequestRecord, "command" | "input">,
  commands: readonly ChangeCommand[],
): Change | undefined {
  const command = commands.find((candidate) => candidate.name === name);
  return command && { command, args: parseInput(command, input), effect: command.effect };
}

/** A request whose step or judgment has thrown this often is left to a person. */
export const maxStepErrors = 5;

/** From the end of a request that wasn't applied until its target is looked at once more: three quiet periods (ms). */
export const lateLookMs = ({ quiesceMs }: { quiesceMs: number }): number => 3 * quiesceMs;

export const throttledWhy = "the compute service asked Gatehouse to slow down";

/** What the queue does next with this request. */
export type Next = { kind: "ended" } | { kind: "wait"; ms: number };

export const ended: Next = { kind: "ended" };
export const waitFor = (ms: number): Extract<Next, { kind: "wait" }> => ({
  kind: "wait",
  ms: Math.max(1, Math.ceil(ms)),
});

/** Why a request isn't sent now. */
export type Stop =
  /** The target is already in the wanted state. */
  | { kind: "already"; seen: Seen }
  | ({ kind: "closed"; why: string; hint?: string | undefined } & Pick<Refusal, "instead">)
  /** It can't be decided yet, and is tried later. */
  | { kind: "later"; why: string; hint?: string; safetyRequest?: string }
  | { kind: "frozen"; freeze: Freeze }
  /** Another request holds the target. */
  | { kind: "locked"; holder: string };

/**
 * Identifies a claim. The number of the attempt isn't enough, because a claim that Redis never had
 * is made again under the same number.
 */
export const claimId = ({ record, attempt, nonce }: StoredRequest): string =>
  `${record.id} ${attempt} ${nonce ?? ""}`;

export type ClosedOrLater = Extract<Stop, { kind: "closed" | "later" }>;
