import { fingerprintOf } from "../../approvals/fingerprint.ts";
import type { Policy } from "../../config/policy-file.ts";
import { channelOfProject } from "../../policy/access.ts";
import { ownerOf } from "../../policy/refusal.ts";
import type { ChangeCommand } from "../../registry/define.ts";
import type { Person } from "../../registry/invocation.ts";
import { type Journal, newRequestId } from "../journal/journal.ts";
import { type Approval, type RequestRecord, approvableOf } from "../journal/record.ts";

/** An authorized command on one resolved target. */
export interface Submission
  extends
    Pick<RequestRecord, "input" | "target" | "channelId" | "origin">,
    Partial<Pick<RequestRecord, (typeof asGiven)[number]>> {
  command: ChangeCommand;
  person: Person;
  /** Known beforehand in a rollout: a late second submission makes no second request. */
  id?: string;
  /** Without it, the request runs at once. */
  approval?: Omit<Approval, "digest" | "expiresAt" | "remindsAt"> & {
    expiresMs: number;
    /** Half way to the end. */
    isReminded?: boolean;
  };
}

/** What a record says as its submission does. */
const asGiven = ["threadTs", "reason", "children", "breakGlass", "labels", "snapshotAt"] as const;

/** Saves a request in the journal. `isNew` is false when an equal one is open or was just done. */
export async function submit(
  submission: Submission,
  by: {
    store: Journal;
    policy: Pick<Policy, "teams">;
    policyVersion: string;
    staleAfterMs: number;
    /** Whoever submits it ends it right away: no worker is woken for it. */
    isHeld?: boolean;
  },
): Promise<{ id: string; isNew: boolean }> {
  const { command, person, approval } = submission;
  const now = await by.store.now();
  const teamChannel = channelOfProject(by.policy, ownerOf(submission.target));
  const asked: RequestRecord = {
    id: submission.id ?? newRequestId(),
    command: command.name,
    input: command.fillIn?.(submission.input, submission.target, new Date(now)) ?? submission.input,
    target: submission.target,
    requester: { id: person.id, teamId: person.teamId, name: person.name },
    channelId: submission.channelId,
    origin: submission.origin,
    policyVersion: by.policyVersion,
    createdAt: now,
    runsUntil: now + (approval?.expiresMs ?? 0) + by.staleAfterMs,
    ...Object.fromEntries(
      asGiven.flatMap((one) => (submission[one] ? [[one, submission[one]]] : [])),
    ),
    ...(teamChannel && teamChannel !== submission.channelId ? { teamChannel } : {}),
  };
  const record = approval ? withApproval(asked, approval, now) : asked;
  const state = record.approval ? "draft" : "authorized";
  return by.store.create({ record, state, isHeld: by.isHeld });
}

function withApproval(
  record: RequestRecord,
  { expiresMs, isReminded, ...asked }: NonNullable<Submission["approval"]>,
  now: number,
): RequestRecord {
  const expiresAt = now + expiresMs;
  const digest = fingerprintOf(approvableOf(record, { ...asked, expiresAt }));
  const reminder = isReminded ? { remindsAt: now + Math.floor(expiresMs / 2) } : {};
  return { ...record, approval: { ...asked, expiresAt, digest, ...reminder } };
}
