import type { AfterNote } from "../../attestation/render-attestation.ts";
import { Markdown } from "../../messages/markdown.ts";
import type { Vote } from "../permit/votes.ts";
import { type Fields, fieldsNamed } from "../../redis/redis.ts";
import { placeIn, shownIn } from "../../redis/shown.ts";
import type { RequestRecord } from "./record.ts";
import { type StageIn, type State, callOf, isKnownState, noSetbacks } from "./stage.ts";

/** `revision` grows with every write, and a write names the one that it read. */
interface Stored {
  record: RequestRecord;
  final: boolean;
  attempt: number;
  /** The random nonce of this attempt's claim. Undefined before the first claim. */
  nonce?: string | undefined;
  owner: string | undefined;
  revision: number;
  changedAt: number;
  votes: readonly Vote[];
  delivered: Delivered;
}

/** A request as it was read, in one of these states. */
export type RequestIn<S extends State> = {
  [In in S]: Stored & { state: In; stage: StageIn<In> };
}[S];

/** A request as it was read. Its state tells which facts its stage has. */
export type StoredRequest = RequestIn<State>;

/** When its call was claimed; before that, when it was requested (Redis, ms). */
export const sentAtOf = ({ record, stage }: StoredRequest): number =>
  callOf(stage)?.sentAt ?? record.createdAt;

/**
 * How Slack shows the request so far. The revision doesn't cover it, because posting changes
 * nothing.
 */
export interface Delivered {
  card?: { channelId: string; ts: string };
  /** The former card, which Slack no longer lets be edited, so its buttons stay. */
  formerCard?: { channelId: string; ts: string };
  /** The `cardVersion` that was last shown. */
  cardView?: string | undefined;
  /** The ts of each notice, or "posting <since>" while a post may be under way. */
  said: Record<string, string>;
  /** Why the channel takes none of its messages. They are sent as direct messages then. */
  closedBy?: string | undefined;
  /** The message where it was requested, when its card is in the channel of its team. */
  asked?: { channelId: string; ts: string } | undefined;
  /** The former message there, which Slack no longer lets be edited. */
  formerAsked?: { channelId: string; ts: string } | undefined;
  /** The `cardVersion` that was last shown there. */
  askedView?: string | undefined;
  /** The bot can't post in the channel of its team, so the card is where it was requested. */
  isTeamClosed?: boolean;
  /** The request has left a shared card, and joins none again. */
  isAlone?: boolean;
  /** Who signed the review of its break-glass. */
  review?: ReviewSignature | undefined;
  /** What the evidence showed after the change. */
  evidence?: AfterNote | undefined;
}

export interface ReviewSignature {
  byId: string;
  /** A name. */
  by: string;
  at: number;
  /** What was checked. */
  why: string;
}

/** Reads a request out of its hash. Undefined for a record that is gone or can't be read. */
export function parseStored(fields: Fields): StoredRequest | undefined {
  try {
    return parseFields(fields);
  } catch {
    // A broken record must not hide the records that are read with it.
    return undefined;
  }
}

/** A request in one of these states is worth nothing without its call. */
const hasCall: readonly State[] = [
  "sending",
  "accepted",
  "unclear",
  "unknown",
  "failed",
  "rejected",
  "not-applied",
];

function parseFields(fields: Fields): StoredRequest | undefined {
  if (!fields["record"] || !fields["state"]) return undefined;
  const record = JSON.parse(fields["record"]) as RequestRecord;
  const { state } = fields;
  if (!isKnownState(state)) return undefined;
  const facts = JSON.parse(fields["stage"] ?? "{}") as object;
  if (hasCall.includes(state) && !("call" in facts)) return undefined;
  return {
    record,
    state,
    // The facts are written together with the state, by this format. Somebody who writes to Redis
    // by hand may set the state alone.
    stage: { ...(state === "authorized" ? { setbacks: noSetbacks } : {}), ...facts, state },
    final: fields["final"] === "1",
    attempt: Number(fields["attempt"]),
    nonce: fields[`claim:${fields["attempt"]}`],
    owner: fields["owner"] || undefined,
    revision: Number(fields["revision"]),
    changedAt: Number(fields["changedAt"]),
    votes: fieldsNamed("vote:", fields)
      .map(([, value]) => withReason(JSON.parse(value) as Vote, fields["denial"]))
      .toSorted((a, b) => a.at - b.at),
    delivered: {
      ...shownIn(fields),
      cardView: fields["face"],
      closedBy: fields["fallback"],
      asked: placeIn(fields["asked"]),
      formerAsked: placeIn(fields["was:asked"]),
      askedView: fields["asked-face"],
      isTeamClosed: fields["team-closed"] !== undefined,
      isAlone: fields["alone"] !== undefined,
      review: fields["review"] ? (JSON.parse(fields["review"]) as ReviewSignature) : undefined,
      evidence: fields["evidence"] ? readEvidence(fields["evidence"]) : undefined,
    },
  } as StoredRequest;
}

function readEvidence(text: string): AfterNote {
  const { line, ...more } = JSON.parse(text) as Omit<AfterNote, "line"> & { line: string };
  return { line: new Markdown(line), ...more };
}

function withReason(vote: Vote, denial: string | undefined): Vote {
  if (denial === undefined) return vote;
  const { by, reason } = JSON.parse(denial) as { by: string; reason: string };
  return by === vote.voterId && vote.vote === "deny" ? { ...vote, reason } : vote;
}
