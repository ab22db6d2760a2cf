import type { Vote } from "../../approvals/votes.ts";
import { placeIn, shownIn } from "../../redis/due-list.ts";
import { type Fields, fieldsNamed } from "../../redis/redis.ts";
import {
  type Delivered,
  isKnownState,
  type Progress,
  type RequestRecord,
  type StoredRequest,
} from "./record.ts";

/** Undefined for a record that is gone or can't be read. */
export function parseStored(fields: Fields): StoredRequest | undefined {
  try {
    return parseFields(fields);
  } catch {
    // A broken record must not hide those that are read with it
    return undefined;
  }
}

function parseFields(fields: Fields): StoredRequest | undefined {
  if (!fields["record"] || !fields["state"]) return undefined;
  const record = JSON.parse(fields["record"]) as RequestRecord;
  if (!isKnownState(fields["state"])) return undefined;
  const asked = placeIn(fields["asked"]);
  return {
    record,
    state: fields["state"],
    final: fields["final"] === "1",
    attempt: Number(fields["attempt"]),
    nonce: fields[`claim:${fields["attempt"]}`],
    owner: fields["owner"] || undefined,
    revision: Number(fields["revision"]),
    changedAt: Number(fields["changedAt"]),
    progress: JSON.parse(fields["progress"] ?? "{}") as Progress,
    votes: fieldsNamed("vote:", fields)
      .map(([, value]) => withReason(JSON.parse(value) as Vote, fields["denial"]))
      .toSorted((a, b) => a.at - b.at),
    delivered: {
      ...shownIn(fields),
      ...(asked ? { asked } : {}),
      ...(fields["face"] ? { cardView: fields["face"] } : {}),
      ...(fields["asked-face"] ? { askedView: fields["asked-face"] } : {}),
      ...(fields["team-closed"] ? { isTeamClosed: true } : {}),
      ...(fields["alone"] ? { isAlone: true } : {}),
      ...(fields["fallback"]
        ? { fallback: fields["fallback"] as NonNullable<Delivered["fallback"]> }
        : {}),
    },
  };
}

function withReason(vote: Vote, denial: string | undefined): Vote {
  if (denial === undefined) return vote;
  const { by, reason } = JSON.parse(denial) as { by: string; reason: string };
  return by === vote.voterId && vote.vote === "deny" ? { ...vote, reason } : vote;
}

/** A step of a request's history. */
export interface Step {
  /** Redis, ms. */
  at: number;
  state: string;
  why: string;
  /** The person who did it, if one did. */
  actor?: string | undefined;
}

/** As the request's hash keeps it, a line for each (`keepStep`). */
export const stepText = ({ state, why, actor }: Omit<Step, "at">): string =>
  JSON.stringify(actor === undefined ? [state, why] : [state, why, actor]);

/** The history in a request's hash. */
export function parseSteps({ createdAt, history }: { createdAt: number; history: string }): Step[] {
  return history
    .split("\n")
    .slice(0, -1)
    .map((row) => {
      const at = row.indexOf(" ");
      const [state, why, actor] = JSON.parse(row.slice(at + 1)) as [string, string, string?];
      const afterMs = Number(row.slice(0, at));
      return { at: createdAt + afterMs, state, why, ...(actor === undefined ? {} : { actor }) };
    });
}
