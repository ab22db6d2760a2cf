import type { Vote } from "../approvals/votes.ts";
import type { Delivered, Progress, RequestRecord, StoredRequest } from "./record.ts";
import { recordVersion } from "./record.ts";
import { isKnownState } from "./states.ts";

/** Undefined for a record that is gone, or that a newer version wrote. */
export function parseStored(fields: Record<string, string>): StoredRequest | undefined {
  if (!fields["record"] || !fields["state"]) return undefined;
  const record = JSON.parse(fields["record"]) as RequestRecord;
  if (record.v !== recordVersion || !isKnownState(fields["state"])) return undefined;
  const all = Object.entries(fields);
  return {
    record: { ...record, createdAt: Number(fields["createdAt"]) },
    state: fields["state"],
    final: fields["final"] === "1",
    attempt: Number(fields["attempt"]),
    owner: fields["owner"] || undefined,
    revision: Number(fields["revision"]),
    changedAt: Number(fields["changedAt"]),
    progress: JSON.parse(fields["progress"] ?? "{}") as Progress,
    votes: all
      .filter(([field]) => field.startsWith("vote:"))
      .map(([, value]) => JSON.parse(value) as Vote)
      .toSorted((a, b) => a.at - b.at),
    delivered: parseDelivered(fields, all),
  };
}

function parseDelivered(
  fields: Record<string, string>,
  all: readonly (readonly [string, string])[],
): Delivered {
  const said = Object.fromEntries(
    all
      .filter(([field]) => field.startsWith("said:"))
      .map(([field, value]) => [field.slice(5), value]),
  );
  const [channelId, ts] = (fields["card"] ?? "").split(" ");
  return {
    said,
    ...(channelId && ts ? { card: { channelId, ts } } : {}),
    ...(fields["face"] ? { face: fields["face"] } : {}),
    ...(fields["fallback"]
      ? { fallback: fields["fallback"] as NonNullable<Delivered["fallback"]> }
      : {}),
  };
}
