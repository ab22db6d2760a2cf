import type { Log } from "../log.ts";
import type { Ledger, LedgerEntry } from "./ledger.ts";
import type { Store } from "./store.ts";

/**
 * Compares what this worker sent with what the journal knows. A send that Redis doesn't know means that Redis was rolled
 * back, restored or emptied: then nothing may be sent on its word until a person has looked, so all changes freeze.
 */
export async function checkLedger(
  ledger: Ledger,
  store: Store,
  log: Log,
  /** Only the newest so many: what a look now and then can afford. */
  newest = Infinity,
): Promise<LedgerEntry[]> {
  const behind: LedgerEntry[] = [];
  const all = ledger.entries();
  const entries = all.slice(Math.max(0, all.length - newest));
  for (let start = 0; start < entries.length; start += 500) {
    const page = entries.slice(start, start + 500);
    const attempts = await store.attemptsOf([...new Set(page.map(({ request }) => request))]);
    for (const entry of page) {
      const attempt = attempts.get(entry.request);
      const isBehind = attempt === undefined || attempt < entry.attempt;
      // Claimed but standing before the claim again: the journal forgot the send
      if (isBehind) behind.push(entry);
    }
  }
  // What an administrator has looked at and thawed does not freeze again
  const looked = await store.lookedAt(behind.map(sendId));
  const missing = behind.filter((entry) => !looked.has(sendId(entry)));
  if (missing.length > 0) {
    await store.noteMissingSends(missing.map(sendId));
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

function sendId({ request, attempt }: LedgerEntry): string {
  return `${request} ${attempt}`;
}
