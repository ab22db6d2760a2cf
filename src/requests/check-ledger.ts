import type { Log } from "../log.ts";
import type { Ledger, LedgerEntry } from "./ledger.ts";
import type { Store } from "./store.ts";

/**
 * Compares what this worker sent with what the journal knows. A send that Redis doesn't know means that Redis was rolled
 * back, restored or emptied: then nothing may be sent on its word until a person has looked, so all changes freeze.
 */
export async function checkLedger(ledger: Ledger, store: Store, log: Log): Promise<LedgerEntry[]> {
  const missing: LedgerEntry[] = [];
  const entries = ledger.entries();
  for (let start = 0; start < entries.length; start += 500) {
    const page = entries.slice(start, start + 500);
    const found = await store.getMany([...new Set(page.map(({ request }) => request))]);
    const attempts = new Map(found.map((request) => [request.record.id, request]));
    for (const entry of page) {
      const request = attempts.get(entry.request);
      const isBehind = request === undefined || request.attempt < entry.attempt;
      // Claimed but standing before the claim again: the journal forgot the send
      if (isBehind) missing.push(entry);
    }
  }
  if (missing.length > 0) {
    log.error("ledger.ahead-of-journal", { count: missing.length, first: missing.slice(0, 20) });
    const some = missing
      .slice(0, 5)
      .map(({ command, target, request }) => `${command} of ${target} (${request})`)
      .join(", ");
    // The first freeze keeps its reason, so the list must not depend on being it
    await store.note({ what: "ledger-ahead", count: missing.length, sends: missing.slice(0, 200) });
    await store.freeze({
      by: "Gatehouse",
      reason: `Redis lost ${missing.length} ${missing.length === 1 ? "request" : "requests"} that had been sent: ${some}`,
    });
  }
  return missing;
}
