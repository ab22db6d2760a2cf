import * as z from "zod";
import type { AfterNote } from "../../attestation/render-attestation.ts";
import { Markdown } from "../../messages/markdown.ts";
import type { VoteNeed } from "../permit/approval-rule.ts";
import type { Vote } from "../permit/votes.ts";
import { defineRecord, objectOf } from "../../redis/define-record.ts";
import { type Fields, fieldsNamed } from "../../redis/redis.ts";
import { placeIn, shownIn } from "../../redis/shown.ts";
import { storedPerson, storedTarget } from "../../registry/stored-target.ts";
import { storedOrigin } from "./origin.ts";
import type { Approval, RequestRecord } from "./record.ts";
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
  /** Fingerprint of what the card was last made of. It is edited when that changes. */
  cardFingerprint?: string | undefined;
  /** The ts of each notice, or "posting <since>" while a post may be under way. */
  marks: Record<string, string>;
  /** Why the channel takes none of its messages. They are sent as direct messages then. */
  closedBy?: string | undefined;
  /** The message where it was requested, when its card is in the channel of its team. */
  requestMessage?: { channelId: string; ts: string } | undefined;
  /** The former message there, which Slack no longer lets be edited. */
  formerRequestMessage?: { channelId: string; ts: string } | undefined;
  /** Fingerprint of what that message was last made of. */
  requestMessageFingerprint?: string | undefined;
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

const optionalText = z.string().exactOptional();
const namedPerson = z.looseObject({ id: z.string(), name: z.string() });

export const requestRecord = defineRecord({
  name: "request",
  schema: objectOf<RequestRecord>({
    id: z.string(),
    command: z.string(),
    input: z.record(z.string(), z.unknown()),
    target: storedTarget,
    requester: storedPerson,
    channelId: z.string(),
    threadTs: optionalText,
    teamChannel: optionalText,
    origin: storedOrigin,
    reason: optionalText,
    policyVersion: z.string(),
    children: z.array(storedTarget).exactOptional(),
    labels: z.record(z.string(), z.string()).exactOptional(),
    snapshotAt: z.number().exactOptional(),
    approval: objectOf<Approval>({
      required: z.number(),
      votes: z
        .array(objectOf<VoteNeed>({ from: z.array(z.string()), required: z.number() }))
        .exactOptional(),
      needs: z
        .array(
          z.looseObject({
            called: z.array(z.string()),
            who: z.array(namedPerson).exactOptional(),
          }),
        )
        .exactOptional(),
      expiresAt: z.number(),
      digest: z.string(),
      why: z.string(),
      who: z.array(namedPerson).exactOptional(),
      remindsAt: z.number().exactOptional(),
      evidence: z.array(z.tuple([z.string(), z.string(), z.number().exactOptional()])),
    }).exactOptional(),
    breakGlass: z.boolean().exactOptional(),
    createdAt: z.number(),
    runsUntil: z.number(),
    interaction: optionalText,
    trace: optionalText,
    parentSpan: optionalText,
  }),
});

/** The facts of a stage, written together with its state, which stands beside them. */
export const stageFacts = defineRecord({
  name: "stage of a request",
  schema: z.looseObject({ call: z.looseObject({ sentAt: z.number() }).exactOptional() }),
});

export const voteRecord = defineRecord({
  name: "vote",
  schema: objectOf<Vote>({
    voterId: z.string(),
    name: z.string(),
    vote: z.enum(["approve", "deny"]),
    at: z.number(),
    digest: z.string(),
    meets: z.array(z.number()).exactOptional(),
    reason: optionalText,
  }),
});

export const denialRecord = defineRecord({
  name: "denial of a request",
  schema: z.looseObject({ by: z.string(), reason: z.string() }),
});

export const reviewSignature = defineRecord({
  name: "signature of a review",
  schema: objectOf<ReviewSignature>({
    byId: z.string(),
    by: z.string(),
    at: z.number(),
    why: z.string(),
  }),
});

export const evidenceRecord = defineRecord({
  name: "evidence after a change",
  schema: objectOf<Omit<AfterNote, "line"> & { line: string }>({
    line: z.string(),
    but: optionalText,
    failure: z.looseObject({ mark: z.string(), isNew: z.boolean() }).exactOptional(),
  }),
});

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

/**
 * Reads a request out of its hash. Undefined for a record that is gone or can't be read, so that it
 * doesn't hide the records that are read with it. A vote that can't be read doesn't count, and a
 * review whose signature can't be read is unsigned.
 */
export function parseStored(id: string, fields: Fields): StoredRequest | undefined {
  const { state } = fields;
  if (!fields["record"] || !state || !isKnownState(state)) return undefined;
  const record = requestRecord.parse(fields["record"], id);
  const facts = stageFacts.parse(fields["stage"] ?? "{}", id);
  if (!record || !facts || (hasCall.includes(state) && !facts.call)) return undefined;
  const votes = voteRecord.parseAll(Object.fromEntries(fieldsNamed("vote:", fields)), id);
  const denial =
    fields["denial"] === undefined ? undefined : denialRecord.parse(fields["denial"], id);
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
    votes: votes.map((vote) => withReason(vote, denial)).toSorted((a, b) => a.at - b.at),
    delivered: {
      ...shownIn(fields),
      cardFingerprint: fields["face"],
      closedBy: fields["fallback"],
      requestMessage: placeIn(fields["asked"]),
      formerRequestMessage: placeIn(fields["was:asked"]),
      requestMessageFingerprint: fields["asked-face"],
      isTeamClosed: fields["team-closed"] !== undefined,
      isAlone: fields["alone"] !== undefined,
      review: fields["review"] ? reviewSignature.parse(fields["review"], id) : undefined,
      evidence: fields["evidence"] ? parseEvidence(fields["evidence"], id) : undefined,
    },
  } as StoredRequest;
}

function parseEvidence(text: string, id: string): AfterNote | undefined {
  const { line, ...more } = evidenceRecord.parse(text, id) ?? {};
  return line === undefined ? undefined : { line: new Markdown(line), ...more };
}

function withReason(vote: Vote, denial: ReturnType<typeof denialRecord.parse>): Vote {
  const isOfVote = denial?.by === vote.voterId && vote.vote === "deny";
  return isOfVote ? { ...vote, reason: denial.reason } : vote;
}
