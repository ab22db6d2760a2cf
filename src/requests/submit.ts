import { digestOf } from "../approvals/digest.ts";
import type { ChangeCommand } from "../registry/define.ts";
import type { Person } from "../registry/person.ts";
import type { Target } from "../registry/target.ts";
import { approvableOf } from "./approved.ts";
import type { Evidence } from "./evidence.ts";
import { type RequestRecord, recordVersion } from "./record.ts";
import { newRequestId, type Store } from "./store.ts";

/** What somebody asked for, authorised and resolved: one command on one target. */
export interface Submission {
  command: ChangeCommand;
  input: Record<string, unknown>;
  target: Target;
  person: Person;
  channelId: string;
  threadTs?: string;
  via: RequestRecord["via"];
  reason?: string;
  /** The delivery that asked; with several targets each has its own suffix. */
  askId: string;
  /** Where it is known beforehand, so that it is made once however late it is submitted again. */
  id?: string;
  /** The roll that it is one target of. */
  roll?: string;
  sealedResponseUrl?: string;
  /** The VMs of a project that goes with them. */
  children?: readonly Target[];
  /** Approvals that policy asks for; none: it runs at once. */
  approval?: { required: number; expiresMs: number; why: string; evidence: Evidence };
  breakGlass?: boolean;
}

export interface Submitted {
  id: string;
  /** False when the same was asked before and is still open, or was done a moment ago. */
  isNew: boolean;
}

/** Writes a request down. From here on it is not lost: whoever dies, the journal has it and the sweeper rings. */
export async function submit(
  submission: Submission,
  by: {
    store: Store;
    policyVersion: string;
    staleAfterMs: number;
    wake(id: string): Promise<void>;
  },
): Promise<Submitted> {
  const { command, person, approval } = submission;
  const now = await by.store.now();
  const waitsMs = approval?.expiresMs ?? 0;
  const asked: RequestRecord = {
    v: recordVersion,
    id: submission.id ?? newRequestId(),
    command: command.name,
    input: command.fillIn?.(submission.input, submission.target, new Date(now)) ?? submission.input,
    target: submission.target,
    requester: { id: person.id, teamId: person.teamId, name: person.name },
    channelId: submission.channelId,
    via: submission.via,
    policyVersion: by.policyVersion,
    createdAt: now,
    runsUntil: now + waitsMs + by.staleAfterMs,
    ...(submission.threadTs ? { threadTs: submission.threadTs } : {}),
    ...(submission.reason ? { reason: submission.reason } : {}),
    ...(submission.children ? { children: submission.children } : {}),
    ...(submission.sealedResponseUrl ? { sealedResponseUrl: submission.sealedResponseUrl } : {}),
    ...(submission.breakGlass ? { breakGlass: true } : {}),
    ...(submission.roll ? { roll: submission.roll } : {}),
  };
  const record = approval ? withApproval(asked, approval, now) : asked;
  const state = record.approval ? "draft" : "authorized";
  const created = await by.store.create({ record, state, askId: submission.askId });
  // A lost ring is no lost request
  if (created.isNew && state === "authorized") await by.wake(created.id).catch(() => undefined);
  return created;
}

function withApproval(
  record: RequestRecord,
  approval: NonNullable<Submission["approval"]>,
  now: number,
): RequestRecord {
  const { required, why, evidence } = approval;
  const expiresAt = now + approval.expiresMs;
  const digest = digestOf(approvableOf(record, { required, expiresAt, evidence }));
  return { ...record, approval: { required, expiresAt, digest, why, evidence } };
}
