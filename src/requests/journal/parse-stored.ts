import type { Vote } from "../../approvals/votes.ts";
import {
  type Delivered,
  isKnownState,
  type Progress,
  type RequestRecord,
  type StoredRequest,
} from "./record.ts";

export { fromPairs } from "../../redis/redis.ts";

/** Undefined for a record that is gone or can't be read. */
export function parseStored(fields: Readonly<Record<string, string>>): StoredRequest | undefined {
  try {
    return parseFields(fields);
  } catch {
    // A broken record must not hide those that are read with it
    return undefined;
  }
}

function parseFields(fields: Readonly<Record<string, string>>): StoredRequest | undefined {
  if (!fields["record"] || !fields["state"]) return undefined;
  const record = JSON.parse(fields["record"]) as RequestRecord;
  if (!isKnownState(fields["state"])) return undefined;
  const [card, asked] = [placeIn(fields["card"]), placeIn(fields["asked"])];
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
    votes: entriesOf(fields, "vote:")
      .map(([, value]) => withReason(JSON.parse(value) as Vote, fields["denial"]))
      .toSorted((a, b) => a.at - b.at),
    delivered: {
      said: Object.fromEntries(entriesOf(fields, "said:")),
      ...(card ? { card } : {}),
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

/** `<channel> <ts>`. */
function placeIn(field = ""): { channelId: string; ts: string } | undefined {
  const [channelId, ts] = field.split(" ");
  return channelId && ts ? { channelId, ts } : undefined;
}

function withReason(vote: Vote, denial: string | undefined): Vote {
  if (denial === undefined) return vote;
  const { by, reason } = JSON.parse(denial) as { by: string; reason: string };
  return by === vote.voterId && vote.vote === "deny" ? { ...vote, reason } : vote;
}

function entriesOf(fields: Readonly<Record<string, string>>, prefix: string): [string, string][] {
  return Object.entries(fields)
    .filter(([field]) => field.startsWith(prefix))
    .map(([field, value]) => [field.slice(prefix.length), value]);
}
