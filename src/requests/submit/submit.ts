import { fingerprintOf } from "../../approvals/fingerprint.ts";
import type { ChangeCommand } from "../../registry/define.ts";
import type { Policy } from "../../config/policy-file.ts";
import { ownerOf } from "../../policy/judged.ts";
import { channelOfProject } from "../../policy/teams.ts";
import type { VoteNeed } from "../../policy/vote-needs.ts";
import type { Person } from "../../registry/invocation.ts";
import type { Evidence } from "./approval-facts.ts";
import { type RequestRecord, approvableOf } from "../journal/record.ts";
import { newRequestId, type Journal } from "../journal/journal.ts";

/** An authorized command on one resolved target. */
export interface Submission
  extends
    Pick<RequestRecord, "input" | "target" | "channelId" | "via">,
    Partial<Pick<RequestRecord, (typeof asGiven)[number]>> {
  command: ChangeCommand;
  person: Person;
  /** With several targets, each has its own suffix. */
  interactionId: string;
  /** Known beforehand in a rollout: a late second submission makes no second request. */
  id?: string;
  /** ID of its rollout. */
  rollout?: string;
  /** Without it, the request runs at once. */
  approval?: {
    required: number;
    votes?: readonly VoteNeed[];
    needs?: NonNullable<RequestRecord["approval"]>["needs"];
    expiresMs: number;
    /** Half way to the end. */
    isReminded?: boolean;
    why: string;
    who?: readonly { id: string; name: string }[] | undefined;
    evidence: Evidence;
  };
}

/** What a record says as its submission does. */
const asGiven = [
  "threadTs",
  "reason",
  "children",
  "sealedResponseUrl",
  "breakGlass",
  "labels",
  "undoes",
] as const;

/** Saves a request in the journal. `isNew` is false when an equal one is open or was just done. */
export async function submit(
  submission: Submission,
  by: {
    store: Journal;
    policy: Pick<Policy, "teams">;
    policyVersion: string;
    staleAfterMs: number;
    wake(id: string): Promise<void>;
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
    via: submission.via,
    policyVersion: by.policyVersion,
    createdAt: now,
    runsUntil: now + (approval?.expiresMs ?? 0) + by.staleAfterMs,
    ...Object.fromEntries(
      asGiven.flatMap((one) => (submission[one] ? [[one, submission[one]]] : [])),
    ),
    ...(teamChannel && teamChannel !== submission.channelId ? { teamChannel } : {}),
    ...(submission.rollout ? { roll: submission.rollout } : {}),
  };
  const record = approval ? withApproval(asked, approval, now) : asked;
  const state = record.approval ? "draft" : "authorized";
  const created = await by.store.create({ record, state, interactionId: submission.interactionId });
  // The sweep repeats a lost wake-up
  if (created.isNew && state === "authorized") await by.wake(created.id).catch(() => undefined);
  return created;
}

function withApproval(
  record: RequestRecord,
  approval: NonNullable<Submission["approval"]>,
  now: number,
): RequestRecord {
  const { required, votes, needs, why, who, evidence, expiresMs, isReminded } = approval;
  const needed = { required, ...(votes ? { votes } : {}) };
  const expiresAt = now + expiresMs;
  const digest = fingerprintOf(approvableOf(record, { ...needed, expiresAt, evidence }));
  const shown = { ...needed, expiresAt, digest, why, evidence };
  const named = { ...(needs ? { needs } : {}), ...(who ? { who } : {}) };
  const reminder = isReminded ? { remindsAt: now + Math.floor(expiresMs / 2) } : {};
  return { ...record, approval: { ...shown, ...named, ...reminder } };
}
