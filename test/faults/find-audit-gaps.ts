import type { Redis } from "ioredis";
import type { Journalled } from "./count-effects.ts";

/** Moves that the protocol knows, written down a second time: the checker takes nobody's word for it. */
const legal: Record<string, readonly string[]> = {
  draft: ["draft", "authorized", "denied", "expired", "cancelled"],
  authorized: ["authorized", "sending", "expired", "cancelled", "rejected", "done", "not-applied"],
  sending: ["sending", "accepted", "rejected", "unclear", "authorized", "done"],
  accepted: ["accepted", "done", "failed", "unclear"],
  unclear: ["unclear", "done", "failed", "not-applied", "unknown", "accepted", "rejected", "authorized"],
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
      const record = JSON.parse(text) as { what?: string; request?: string; move?: string };
      if (record.what !== "request" || !record.request || !record.move) continue;
      moves.set(record.request, [...(moves.get(record.request) ?? []), record.move]);
    }
    const last = page.at(-1);
    if (page.length < 2000 || !last) break;
    start = `(${last[0]}`;
  }
  const findings: string[] = [];
  for (const request of journal) {
    const recorded = moves.get(request.id) ?? [];
    const [first = "nothing", ...rest] = recorded;
    const happened = request.history.join(" ");
    if (first !== "authorized" && first !== "draft") findings.push(`audit: ${request.id} begins with ${first}`);
    if (rest.join(" ") !== happened)
      findings.push(`audit: ${request.id} moved [${happened}], recorded [${rest.join(" ")}]`);
    const claims = rest.filter((move) => move === "sending").length;
    if (claims !== request.attempt)
      findings.push(`audit: ${request.id} has ${request.attempt} attempts and ${claims} records of a claim`);
    for (let at = 1; at < recorded.length; at++) {
      const [from = "", to = ""] = recorded.slice(at - 1, at + 1);
      if (!legal[from]?.includes(to)) findings.push(`audit: ${request.id} moved from ${from} to ${to}`);
    }
  }
  return findings;
}
