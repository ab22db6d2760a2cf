import type { Approvable } from "../permit/fingerprint.ts";
import type { Traced } from "../../log/traces.ts";
import type { VoteNeed } from "../permit/approval-rule.ts";
import type { Labels, Target } from "../../registry/define.ts";
import { type Origin, auditOrigin, undoneBy } from "./origin.ts";

/**
 * The part of a request that never changes; anything different is another request. Its trace
 * decides nothing.
 */
export interface RequestRecord extends Traced {
  id: string;
  command: string;
  /** Arguments as words, parsed again by each worker. */
  input: Record<string, unknown>;
  target: Target;
  requester: { id: string; teamId: string; name: string };
  channelId: string;
  threadTs?: string;
  /**
   * The channel of the target's team, if the request was made elsewhere. The team decides there,
   * and hears there of an unknown outcome.
   */
  teamChannel?: string;
  origin: Origin;
  reason?: string;
  policyVersion: string;
  /** The VMs of a project to delete. */
  children?: readonly Target[];
  /** Names that approvers read, so approvals cover them. */
  labels?: Labels;
  /**
   * When the snapshot to restore was taken, where Gatehouse knows it. Everything that was written
   * later is lost.
   */
  snapshotAt?: number;
  approval?: Approval;
  /** The request skipped approval in an emergency, and is reviewed afterwards. */
  breakGlass?: boolean;
  /** Milliseconds, Redis time. */
  createdAt: number;
  /**
   * The request expires at this time unless it has started, because a late command is worse than
   * none. One that was approved early expires earlier.
   */
  runsUntil: number;
}

/**
 * Whether someone must sign a review of it. Cards say so even when the feature that asks for the
 * signature is off. A safety snapshot belongs to the request that it was taken for.
 */
export const isReviewed = ({
  breakGlass,
  origin,
}: Pick<RequestRecord, "breakGlass" | "origin">): boolean =>
  breakGlass === true && origin.kind !== "safety";

export interface Approval {
  /** How many approvals are needed in all. */
  required: number;
  /** Who the approvers must be, as of the request (`needsOf`). */
  votes?: readonly VoteNeed[];
  /**
   * The names of the approvers of each entry of `votes`, where it isn't `access.approve` that says
   * who, and the people who could approve; undefined for all members.
   */
  needs?: readonly { called: readonly string[]; who?: readonly Named[] }[];
  /** Milliseconds, Redis time. */
  expiresAt: number;
  /** Fingerprint of everything that is approved (`core/permit/fingerprint.ts`). */
  digest: string;
  /** The rule that requires them, in words. */
  why: string;
  /**
   * Who could approve where `access.approve` says who, as of the request. Undefined for every full
   * member.
   */
  who?: readonly Named[] | undefined;
  /**
   * When half of the time is over. The thread is then reminded, and the requester hears of the end
   * in a direct message.
   */
  remindsAt?: number;
  /** Facts for approvers, as of the request; `at`, where a fact has a time (ms), is shown in the reader's zone. */
  evidence: readonly (readonly [label: string, text: string, at?: number])[];
}

/** The label of the fact that says in which status a target was. */
export const statusWhenRequested = "Status when requested";

interface Named {
  id: string;
  name: string;
}

const alphabet = "23456789bcdfghjkmnpqrstvwxz";

/**
 * Turns each byte into a letter or digit for an ID that can be read over the phone: without vowels,
 * so that it forms no words, and without 0, o, 1, and l.
 */
export function lettersOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => alphabet[byte % alphabet.length]).join("");
}

/** Waiting requests with the same key share their polls. */
export function pollKeyOf({ target }: Pick<RequestRecord, "target">): string {
  if (target.kind === "vm") return `vms/${target.projectId}`;
  return target.id === "" ? `named/${target.name}` : `project/${target.id}`;
}

/**
 * Returns the lock that a claim takes, and the locks that must be free, because a change of a
 * project excludes changes of its VMs.
 */
export function locksOf({ target }: RequestRecord, vmIds: readonly string[] = []) {
  if (target.kind === "vm")
    return { take: `vm:${target.id}`, free: [`project:${target.projectId}`] };
  if (target.id === "") return { take: `name:${target.name}`, free: [] };
  return { take: `project:${target.id}`, free: vmIds.map((id) => `vm:${id}`) };
}

/** Returns everything that an approval covers, which is the record without its own fingerprint. */
export function approvableOf(
  record: RequestRecord,
  approval: Pick<Approval, "required" | "votes" | "expiresAt"> & { evidence: unknown },
): Approvable {
  const undoes = undoneBy(record);
  return {
    id: record.id,
    command: record.command,
    input: record.input,
    target: record.target,
    ...(record.children ? { children: record.children } : {}),
    ...(record.labels ? { labels: record.labels } : {}),
    ...(record.snapshotAt ? { snapshotAt: record.snapshotAt } : {}),
    ...(undoes ? { undoes } : {}),
    requesterId: record.requester.id,
    teamId: record.requester.teamId,
    channelId: record.channelId,
    ...(record.reason === undefined ? {} : { reason: record.reason }),
    policyVersion: record.policyVersion,
    required: approval.required,
    ...(approval.votes ? { votes: approval.votes } : {}),
    expiresAt: approval.expiresAt,
    evidence: approval.evidence,
  };
}

/** An equal request of the same person within this time (ms) is the same one, even when it is already done. */
export const sameWithinMs = 10_000;
/** How long a finished request is kept. */
export const keepFinalMs = 90 * 24 * 3600_000;

/**
 * Builds the audit record of a step. It has IDs and not names of people, and no parameters that
 * could be secret. Each record says what it is about and for whom; fields that never change
 * otherwise stand in the request's first record.
 */
export function auditRecord(
  record: RequestRecord,
  entry: Record<string, unknown>,
  actor?: string,
): string {
  const { target, requester, approval } = record;
  return JSON.stringify({
    what: "request",
    request: record.id,
    command: record.command,
    target: { kind: target.kind, id: target.id, name: target.name },
    requester: requester.id,
    digest: approval?.digest,
    origin: auditOrigin(record.origin),
    who: actor,
    ...entry,
  });
}
