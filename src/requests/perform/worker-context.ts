import type { Appraiser } from "../../attestation/appraiser.ts";
import type { Compute } from "../../compute/compute.ts";
import type { Log } from "../../log/log.ts";
import type { Policy } from "../../config/policy-file.ts";
import type { ChangeCommand, Effect, Seen } from "../../registry/define.ts";
import type { Args, Person } from "../../registry/invocation.ts";
import { parseInput } from "../../registry/parse.ts";
import type { Ledger } from "../journal/ledger.ts";
import type { Journal } from "../journal/journal.ts";
import type { Polls } from "../journal/polls.ts";
import type { Progress, RequestRecord, StoredRequest } from "../journal/record.ts";
import type { Freeze } from "../journal/switches.ts";

/** What lies to the right in the import order (the queue, Slack) comes in as functions. */
export interface WorkerContext {
  store: Journal;
  ledger: Ledger;
  compute: Compute;
  appraiser: Appraiser;
  commands: readonly ChangeCommand[];
  policy: Policy;
  policyVersion: string;
  /** Why this process claims nothing now, in words (`start/policy-keeper.ts`). */
  standstill(): string | undefined;
  ourTeamId: string;
  /** Who this is in Slack, at most a minute old. Rejects when Slack can't say. */
  person(id: string, teamId: string): Promise<Person>;
  /** The name of a project as last read; undefined for one that isn't known. */
  projectName(id: string): Promise<string | undefined>;
  workerId: string;
  /** False once that worker's heartbeat stays away (`observeAlive`). */
  isAlive(workerId: string): Promise<boolean>;
  /** Enqueues a wake-up for a request. */
  wake(id: string): Promise<void>;
  polls: Polls;
  /** This worker's slots, shared between projects. */
  shares: ReturnType<typeof createShares>;
  /** Requests whose call this process saw end without a clear answer: only it may resend them. */
  mine: Set<string>;
  /** Claims (`claimId`) under way in this process; undecided until they end. */
  calling: Set<string>;
  /** Claims (`claimId`) of any worker seen under way, since when by this process's monotonic clock. */
  sendingSince: Map<string, number>;
  /** Claims (`claimId`) of this process whose call never left, and that could not be returned. */
  unsent: Set<string>;
  /** Undefined once no single failure of Redis can lose this claim; otherwise why that isn't known, in words. */
  durable(claimed: StoredRequest, replicas: number | undefined): Promise<string | undefined>;
  log: Log;
  /** Test hook: tests end the process at these points. */
  at(
    point: "gate" | "gated" | "claim" | "ledger" | "send" | "answer" | "move" | "watch",
    request: string,
  ): Promise<void>;
}

/** A request, parsed. */
export interface Change {
  command: ChangeCommand;
  args: Args;
  effect: Effect<Seen, Args>;
}

/**
 * A process of another version may have written the record: undefined for a command that this one lacks, throws UserError for unreadable
 * arguments.
 */
export function changeOf(
  { command: name, input }: Pick<RequestRecord, "command" | "input">,
  commands: readonly ChangeCommand[],
): Change | undefined {
  const command = commands.find((one) => one.name === name);
  return command && { command, args: parseInput(command, input), effect: command.effect };
}

/** A request whose step or judging has thrown so often is left to a person. */
export const maxStepErrors = 5;

export const throttledWhy = "the compute service asked Gatehouse to slow down";

/** What the queue does next with this request. */
export type Next = { is: "ended" } | { is: "wait"; ms: number };

export const ended: Next = { is: "ended" };
export const waitFor = (ms: number): Extract<Next, { is: "wait" }> => ({
  is: "wait",
  ms: Math.max(1, Math.ceil(ms)),
});

/** Why a request isn't sent now. */
export type Stop =
  /** The target is already in the wanted state. */
  | { is: "already"; seen: Seen }
  | { is: "closed"; why: string; hint?: string | undefined }
  /** Undecided; try later. */
  | { is: "later"; why: string; hint?: string; safety?: Progress["safety"] }
  | { is: "frozen"; freeze: Freeze }
  /** Another request holds the target. */
  | { is: "locked"; holder: string };

/** Full jitter, so that many who wait don't come back at once. */
export function jitter(ms: number): number {
  return Math.random() * ms;
}

/** 2, 4, 8 … times the first poll interval, at most the longest; half of it is jitter. */
export function backoff(
  times: number,
  timing: { pollFirstMs: number; pollMostMs: number },
): number {
  const whole = Math.min(timing.pollMostMs, timing.pollFirstMs * 2 ** Math.min(times, 10));
  return whole / 2 + jitter(whole / 2);
}

/** Not the attempt's number alone: a claim that Redis never had is made again under the same number. */
export const claimId = ({
  record,
  attempt,
  nonce,
}: Pick<StoredRequest, "record" | "attempt" | "nonce">): string =>
  `${record.id} ${attempt} ${nonce ?? ""}`;

/** From this age on (ms), a step under way shows that its project is slow. */
const slowMs = 2_000;
/** How long a project counts as slow after that. */
const slowForMs = 30_000;

/**
 * Shares a worker's slots between projects: one alone gets three quarters of them, and one whose calls hang gets a quarter,
 * so that requests of others begin within seconds.
 */
export function createShares(slots: number, now: () => number = () => performance.now()) {
  const running = new Map<string, Set<{ since: number }>>();
  const slowUntil = new Map<string, number>();
  return {
    /** Takes a place, to be given back by calling the result; undefined when the project has none left. */
    take(project: string): (() => void) | undefined {
      const places = running.get(project) ?? new Set();
      const at = now();
      if ([...places].some(({ since }) => at - since > slowMs))
        slowUntil.set(project, at + slowForMs);
      const isSlow = (slowUntil.get(project) ?? 0) > at;
      if (places.size >= Math.max(1, Math.floor(slots * (isSlow ? 0.25 : 0.75)))) return undefined;
      const place = { since: at };
      running.set(project, places.add(place));
      return () => {
        if (now() - place.since > slowMs) slowUntil.set(project, now() + slowForMs);
        places.delete(place);
        if (places.size === 0) running.delete(project);
      };
    },
  };
}
