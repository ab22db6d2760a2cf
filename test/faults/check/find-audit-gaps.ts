import type { Redis } from "ioredis";
import type { Journalled } from "./count-effects.ts";

/** Moves that the protocol knows, written down a second time: the checker takes nobody's word for it. */
const legal: Record<string, readonly string[]> = {
  draft: ["draft", "authorized", "denied", "expired", "cancelled"],
  authorized: [
    "authorized",
    "sending",
    "expired",
    "cancelled",
    "rejected",
    "done",
    "not-applied",
    "denied",
  ],
  sending: ["sending", "accepted", "rejected", "unclear", "authorized", "done"],
  accepted: ["accepted", "done", "failed", "unclear"],
  unclear: [
    "unclear",
    "done",
    "failed",
    "not-applied",
    "unknown",
    "accepted",
    "rejected",
    "authorized",
  ],
  "not-applied": ["authorized", "not-applied", "accepted", "rejected", "unclear", "done"],
  unknown: ["unknown", "done", "not-applied", "failed"],
};

/** Moves without a record, records without a move, claims without an attempt, and moves the protocol doesn't know. */
export async function findAuditGaps(
  redis: Redis,
  namespace: string,
  journal: readonly Journalled[],
): Promise<string[]> {
  const moves = new Map<string, string[]>();
  let start = "-";
  for (;;) {
    const page = await redis.xrange(`{${namespace}}:audit`, start, "+", "COUNT", 2000);
    for (const [, fields] of page) {
      const text = fields[fields.indexOf("record") + 1] ?? "{}";
      const record = JSON.parse(text) as {
        what?: string;
        request?: string;
        move?: string;
        vote?: string;
      };
      const step = record.move ?? (record.vote === undefined ? undefined : `vote:${record.vote}`);
      if (record.what !== "request" || !record.request || !step) continue;
      moves.set(record.request, [...(moves.get(record.request) ?? []), step]);
    }
    const last = page.at(-1);
    if (page.length < 2000 || !last) break;
    start = `(${last[0]}`;
  }
  return journal.flatMap((request) => gapsOf(request, moves.get(request.id) ?? []));
}

function gapsOf(request: Journalled, records: readonly string[]): string[] {
  const { id, history } = request;
  const findings: string[] = [];
  const [first = "nothing", ...rest] = records;
  if (first !== "authorized" && first !== "draft")
    findings.push(`audit: ${id} begins with ${first}`);
  if (!matches(history, rest))
    findings.push(`audit: ${id} moved [${history.join(" ")}], recorded [${rest.join(" ")}]`);
  const claims = rest.filter((move) => move === "sending").length;
  if (claims !== request.attempt)
    findings.push(`audit: ${id} has ${request.attempt} attempts and ${claims} records of a claim`);
  const states = [first, ...history];
  for (let at = 1; at < states.length; at++) {
    const [from = "", to = ""] = states.slice(at - 1, at + 1);
    if (!legal[from]?.includes(to)) findings.push(`audit: ${id} moved from ${from} to ${to}`);
  }
  return findings;
}

/** Every move has its record, in order. The vote that decides is the record of its move; other votes are no moves. */
function matches(history: readonly string[], records: readonly string[]): boolean {
  let at = 0;
  for (const state of history) {
    const vote =
      state === "denied" ? "vote:deny" : state === "authorized" ? "vote:approve" : undefined;
    while (records[at]?.startsWith("vote:") && (records[at] !== vote || isMoreOf(records, at)))
      at++;
    if (records[at] !== state && records[at] !== vote) return false;
    at++;
  }
  return records.slice(at).every((record) => record.startsWith("vote:"));
}

/** Several must say yes: the last of them decides. */
function isMoreOf(records: readonly string[], at: number): boolean {
  return records[at] === "vote:approve" && records[at + 1] === "vote:approve";
}
