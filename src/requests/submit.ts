import type { ChangeCommand } from "../registry/define.ts";
import type { Person } from "../registry/person.ts";
import type { Target } from "../registry/target.ts";
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
  sealedResponseUrl?: string;
}

export interface Submitted {
  id: string;
  /** False when the same was asked before and is still open, or was asked a moment ago. */
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
  const { command, person } = submission;
  const now = await by.store.now();
  const record: RequestRecord = {
    v: recordVersion,
    id: newRequestId(),
    command: command.name,
    input: submission.input,
    target: submission.target,
    requester: { id: person.id, teamId: person.teamId, name: person.name },
    channelId: submission.channelId,
    via: submission.via,
    policyVersion: by.policyVersion,
    createdAt: now,
    runsUntil: now + by.staleAfterMs,
    ...(submission.threadTs ? { threadTs: submission.threadTs } : {}),
    ...(submission.reason ? { reason: submission.reason } : {}),
    ...(submission.sealedResponseUrl ? { sealedResponseUrl: submission.sealedResponseUrl } : {}),
  };
  const created = await by.store.create({ record, state: "authorized", askId: submission.askId });
  // A lost ring is no lost request
  if (created.isNew) await by.wake(created.id).catch(() => undefined);
  return created;
}
