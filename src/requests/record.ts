import type { Vote } from "../approvals/votes.ts";
import type { Seen } from "../registry/define.ts";
import type { Target } from "../registry/target.ts";
import type { State } from "./states.ts";

/** Journal records carry this number; a process that doesn't know a record's number leaves it alone. */
export const recordVersion = 1;

/** The part of a request that never changes. Anything different is another request. */
export interface RequestRecord {
  v: typeof recordVersion;
  id: string;
  command: string;
  /** Arguments as words, parsed again by whoever performs it. */
  input: Record<string, unknown>;
  target: Target;
  requester: { id: string; teamId: string; name: string };
  channelId: string;
  threadTs?: string;
  /** How it was asked for: typed, pressed, submitted in a modal; by us: before a restore, or as one of a roll. */
  via: "command" | "button" | "modal" | "mention" | "safety" | "roll";
  /** The roll that it is one target of. */
  roll?: string;
  reason?: string;
  policyVersion: string;
  /** What goes with the target: the VMs of a project that is deleted. */
  children?: readonly Target[];
  /** Set when others have to say yes first. */
  approval?: Approval;
  /** Ran without waiting for approval, in an emergency; reviewed afterwards. */
  breakGlass?: boolean;
  /** Milliseconds, Redis time. */
  createdAt: number;
  /** After this it is not begun any more: a late command is worse than none. */
  runsUntil: number;
  /** A way to answer where the bot is no member, sealed (`slack/response-url.ts`). */
  sealedResponseUrl?: string;
}

/** The approvals that a request waits for, and what exactly they cover. */
export interface Approval {
  required: number;
  /** Milliseconds, Redis time. No answer by then is a no. */
  expiresAt: number;
  /** SHA-256 over everything that is approved (`approvals/digest.ts`). */
  digest: string;
  /** Which rule asks for them, in words. */
  why: string;
  /** Facts for whoever decides, as they were when it was asked: label and text. */
  evidence: readonly (readonly [label: string, text: string])[];
}

/** One read of the target, as it is remembered: enough to compare and to say. */
export interface Look {
  at: number;
  /** What a person is told: "RUNNING", or "gone". */
  status: string;
  /** Equal prints are equal reads. */
  print: string;
}

/** The part that grows while the request lives. */
export interface Progress {
  /** Read right before the send. */
  before?: Seen;
  after?: Seen;
  sentAt?: number;
  /** The call has ended, so nothing more of it can leave us. */
  endedAt?: number;
  answer?: { class: string; status?: number; message?: string; snapshotId?: string };
  /** Proof that it began, and when it was seen. */
  mark?: { status: string; at: number };
  lastLook?: Look;
  /** Since when all reads were equal. */
  sameSince?: number;
  /** The same, counting only reads after the time of quiet. */
  quietSince?: number;
  /** How many reads there were after the time of quiet. */
  quietLooks?: number;
  /** Since when the target can't be read at all. */
  blindSince?: number;
  looks?: number;
  notSent?: number;
  throttled?: number;
  resent?: number;
  stepErrors?: number;
  /** Not before this time (Redis, ms). */
  notBefore?: number;
  /** Only this worker may claim it: it saw its own call end. */
  reservedFor?: string;
  /** The request that holds the target, and who asked for it. */
  waitsFor?: { request: string; requesterName?: string; command?: string };
  /** Why it stands where it stands, as a sentence for the person. */
  why?: string;
  hint?: string;
  /** It stood that way already, so nothing was sent. */
  already?: boolean;
  /** May be sent once more by its owner (state not-applied only). */
  mayResend?: boolean;
  /** The snapshot that is taken right before, as the way back: its request, and its id once it is there. */
  safety?: { request: string; snapshotId?: string };
  /** Who said how an unknown outcome ended, or who cancelled. */
  decidedBy?: { id: string; name?: string; reason?: string };
  unknownSince?: number;
  /** Reminders of an unknown outcome that are due so far. */
  reminders?: number;
}

/** A request as it stands in the journal. `revision` grows with every write; a write names the one it was made against. */
export interface StoredRequest {
  record: RequestRecord;
  state: State;
  final: boolean;
  attempt: number;
  owner: string | undefined;
  revision: number;
  changedAt: number;
  progress: Progress;
  votes: readonly Vote[];
  delivered: Delivered;
}

/** What Slack has been told so far. Kept beside the journal, not under its revision: telling changes nothing. */
export interface Delivered {
  card?: { channelId: string; ts: string };
  /** The face of the card as last shown. */
  face?: string;
  /** Notice → its ts, or "posting <since>" while a post may be on the wire. */
  said: Record<string, string>;
  /** Where messages go when the channel does not take them. */
  fallback?: "response-url" | "dm" | "none";
}

/** The key under which waiting requests share their polls. */
export function watchKeyOf(record: Pick<RequestRecord, "target" | "command">): string {
  const { target } = record;
  if (target.kind === "vm") return `vms/${target.projectId}`;
  return target.id === "" ? `named/${target.name}` : `project/${target.id}`;
}

/** What the claim takes, and what must not be taken by another request: a project's change excludes those of its VMs. */
export function locksOf(
  record: Pick<RequestRecord, "target">,
  vmIds: readonly string[] = [],
): { take: string; free: string[] } {
  const { target } = record;
  if (target.kind === "vm")
    return { take: `vm:${target.id}`, free: [`project:${target.projectId}`] };
  if (target.id === "") return { take: `name:${target.name}`, free: [] };
  return { take: `project:${target.id}`, free: vmIds.map((id) => `vm:${id}`) };
}
