import { fingerprintOf } from "../permit/fingerprint.ts";
import type { Policy } from "../../config/policy-file.ts";
import { channelOfProject } from "../permit/access.ts";
import { type Permit, checkPermit } from "../permit/permit.ts";
import { ownerOf } from "../permit/refusal.ts";
import type { Equal } from "../request/create-request.ts";
import { type Journal, newRequestId } from "../request/journal.ts";
import type { Origin } from "../request/origin.ts";
import { type Approval, type RequestRecord, approvableOf } from "../request/record.ts";

/** Facts of a request that its permit doesn't have. */
export interface Details extends Partial<Pick<RequestRecord, (typeof asGiven)[number]>> {
  /** Where messages about it go. By default it is the channel where it was asked for. */
  channelId?: string;
  /**
   * The ID, if it is known beforehand, as in a rollout. A late second submission then makes no
   * second request.
   */
  id?: string;
  /** Facts for approvers, where the permit requires approvals. */
  forApprovers?: Pick<Approval, "evidence" | "who" | "needs"> & {
    /** Whether approvers are reminded after half of the time. */
    isReminded?: boolean;
  };
}

/** Fields that the record takes over from the details. */
const asGiven = ["threadTs", "reason", "children", "labels", "snapshotAt"] as const;

/**
 * Saves a permitted request in the journal. It waits for the approvals that its permit requires, or runs at once where that
 * requires none. `isNew` is false when an equal one is open or was just done: `record` is then stored nowhere.
 */
export async function submit(
  permit: Permit,
  origin: Origin,
  details: Details,
  context: {
    store: Journal;
    policy: Pick<Policy, "teams">;
    policyVersion: string;
    staleAfterMs: number;
    /** The caller ends it right away, so no worker is woken for it. */
    isHeld?: boolean;
  },
): Promise<{ id: string; isNew: boolean; record: RequestRecord }> {
  checkPermit(permit);
  const { target, approvals } = permit;
  const { channelId = permit.channelId, id = newRequestId() } = details;
  const isWaiting = approvals.required > 0;
  const now = await context.store.now();
  const teamChannel = channelOfProject(context.policy, ownerOf(target));
  const asked: RequestRecord = {
    id,
    ...askedBy(permit, now),
    channelId,
    origin,
    policyVersion: context.policyVersion,
    createdAt: now,
    runsUntil: now + (isWaiting ? approvals.expiresMs : 0) + context.staleAfterMs,
    ...Object.fromEntries(
      asGiven.flatMap((field) => (details[field] ? [[field, details[field]]] : [])),
    ),
    ...(teamChannel && teamChannel !== channelId ? { teamChannel } : {}),
  };
  const record = isWaiting ? withApproval(asked, permit, details.forApprovers, now) : asked;
  const state = isWaiting ? "draft" : "authorized";
  return { ...(await context.store.create({ record, state, isHeld: context.isHeld })), record };
}

/** The part of a request by which an equal one is recognized. `now` is Redis time (ms). */
export function askedBy(permit: Permit, now: number): Equal {
  const { command, person, target, input } = permit;
  return {
    command: command.name,
    input: command.fillIn?.(input, target, new Date(now)) ?? input,
    target,
    requester: { id: person.id, teamId: person.teamId, name: person.name },
    ...(permit.isBreakGlass ? { breakGlass: true } : {}),
  };
}

function withApproval(
  record: RequestRecord,
  { approvals: { required, votes, expiresMs, why } }: Permit,
  { isReminded = false, ...shown }: Details["forApprovers"] = { evidence: [] },
  now: number,
): RequestRecord {
  const expiresAt = now + expiresMs;
  const asked = { required, votes, why, ...shown };
  const digest = fingerprintOf(approvableOf(record, { ...asked, expiresAt }));
  const reminder = isReminded ? { remindsAt: now + Math.floor(expiresMs / 2) } : {};
  return { ...record, approval: { ...asked, expiresAt, digest, ...reminder } };
}
