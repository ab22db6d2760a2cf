import type { Approvable } from "../permit/fingerprint.ts";
import type { Traced } from "../../log/traces.ts";
import type { VoteNeed } from "../permit/approval-rule.ts";
import type { Labels, Target } from "../../registry/define.ts";
import { type Origin, auditOrigin, undoneBy } from "./origin.ts";

/** The part of a request that never changes. Anything different is another request. Nothing is decided by its trace. */
export interface RequestRecord extends Traced {
  id: string;
  command: string;
  /** Arguments as words, parsed again by each worker. */
  input: Record<string, unknown>;
  target: Target;
  requester: { id: string; teamId: string; name: string };
  channelId: string;
  threadTs?: string;
  /** The channel of the target's team, where it was requested elsewhere: there they decide, and hear of what is unknown. */
  teamChannel?: string;
  origin: Origin;
  reason?: string;
  policyVersion: string;
  /** The VMs of a project to delete. */
  children?: readonly Target[];
  /** Approvers read these names, so approvals cover them. */
  labels?: Labels;
  /** Of the snapshot to restore, where Gatehouse knows it: what was written later is lost. */
  snapshotAt?: number;
  approval?: Approval;
  /** Skipped approval in an emergency; reviewed afterwards. */
  breakGlass?: boolean;
  /** Milliseconds, Redis time. */
  createdAt: number;
  /** Expires at this time unless started: a late command is worse than none. */
  runsUntil: number;
}

/** Whether someone must sign a review of it: cards say so, with the feature or without. A safety snapshot is part of the request that it was taken for. */
export const isReviewed = ({
  breakGlass,
  origin,
}: Pick<RequestRecord, "breakGlass" | "origin">): boolean =>
  breakGlass === true && origin.kind !== "safety";

export interface Approval {
  /** Of all together. */
  required: number;
  /** Who they must be, as of the request (`needsOf`). */
  votes?: readonly VoteNeed[];
  /** Of each of `votes`, where not `access.approve` says who: what those are called, and who could; undefined for all members. */
  needs?: readonly { called: readonly string[]; who?: readonly Named[] }[];
  /** Milliseconds, Redis time. */
  expiresAt: number;
  /** Fingerprint of everything that is approved (`core/permit/fingerprint.ts`). */
  digest: string;
  /** The rule that requires them, in words. */
  why: string;
  /** Who could where `access.approve` says, as of the request; undefined for every full member. */
  who?: readonly Named[] | undefined;
  /** Half way to the end: then its thread is reminded, and who requested it hears of the end in a direct message. */
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

/** For IDs, one for each byte, that can be read over the phone: no vowels (no words), no 0/o/1/l. */
export function lettersOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => alphabet[byte % alphabet.length]).join("");
}

/** Waiting requests with the same key share their polls. */
export function pollKeyOf({ target }: Pick<RequestRecord, "target">): string {
  if (target.kind === "vm") return `vms/${target.projectId}`;
  return target.id === "" ? `named/${target.name}` : `project/${target.id}`;
}

/** The lock that a claim takes, and those that must be free: a change of a project excludes changes of its VMs. */
export function locksOf({ target }: RequestRecord, vmIds: readonly string[] = []) {
  if (target.kind === "vm")
    return { take: `vm:${target.id}`, free: [`project:${target.projectId}`] };
  if (target.id === "") return { take: `name:${target.name}`, free: [] };
  return { take: `project:${target.id}`, free: vmIds.map((id) => `vm:${id}`) };
}

/** What an approval covers: everything but its own fingerprint. */
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
 * The audit record of a step. IDs, not names, for people; no parameters that could be secret. Each tells what it is about and for
 * whom; what never changes otherwise stands in the request's first record.
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
