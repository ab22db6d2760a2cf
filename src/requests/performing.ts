import type { Compute } from "../compute/compute.ts";
import type { Log } from "../log.ts";
import type { Policy } from "../policy-file.ts";
import type { ChangeCommand } from "../registry/define.ts";
import type { Person } from "../registry/person.ts";
import type { Ledger } from "./ledger.ts";
import type { Store } from "./store.ts";

/**
 * Everything that performing a request needs. What lies to the right in the import order (the queue, Slack) comes in
 * as functions, joined in `main.ts`.
 */
export interface Performing {
  store: Store;
  ledger: Ledger;
  compute: Compute;
  commands: readonly ChangeCommand[];
  policy: Policy;
  policyVersion: string;
  ourTeamId: string;
  /** Who this is in Slack right now, at most a minute old. Rejects when that can't be told. */
  person(id: string, teamId: string): Promise<Person>;
  workerId: string;
  /** Whether that worker's heart still beats. */
  isAlive(workerId: string): Promise<boolean>;
  /** Rings for a request, at once or later. */
  wake(id: string): Promise<void>;
  /** Rings for the polls that requests share. */
  watch(watchKey: string, soon: boolean): Promise<void>;
  /** Requests whose call this process made and saw end without a clear answer: only it may send them again. */
  mine: Set<string>;
  /** Requests whose call is under way in this process: nobody here decides about them before it has ended. */
  calling: Set<string>;
  log: Log;
  /** Named points of the protocol, for those who test it by ending the process there. */
  at(point: FailPoint, request: string): Promise<void>;
}

export type FailPoint =
  | "gate"
  | "gated"
  | "claim"
  | "ledger"
  | "send"
  | "answer"
  | "move"
  | "watch";

/** What the queue does next with this request. */
export type Next = { is: "ended" } | { is: "wait"; ms: number };

export const ended: Next = { is: "ended" };
export const waitFor = (ms: number): Next => ({ is: "wait", ms: Math.max(1, Math.ceil(ms)) });

/** Full jitter: anything from nothing to the whole, so that many who wait don't come back at once. */
export function jitter(ms: number): number {
  return Math.random() * ms;
}

/** 2, 4, 8 … times the first poll, at most the longest; half of it is jitter. */
export function backoff(
  times: number,
  timing: { pollFirstMs: number; pollMostMs: number },
): number {
  const whole = Math.min(timing.pollMostMs, timing.pollFirstMs * 2 ** Math.min(times, 10));
  return whole / 2 + jitter(whole / 2);
}
