import { readdir, rm, stat } from "node:fs/promises";
import path from "node:path";
import { keepFinalMs } from "./record.ts";

/**
 * Removes the ledgers of workers that are gone, once nothing in them can be in the journal any more; the comparison with
 * the journal looks back for a third of that time. Only the process that holds the directory may call it. `now` is the
 * earliest of the clocks at hand (ms): one that is ahead must not make a ledger old. Resolves with the names.
 */
export async function removeOldLedgers(folder: string, now: number): Promise<string[]> {
  const removed: string[] = [];
  for (const name of await readdir(folder)) {
    if (!/^sends-.*\.jsonl$/.test(name)) continue;
    const file = path.join(folder, name);
    // Each entry that was appended has set it
    const { mtimeMs } = await stat(file);
    if (mtimeMs > now - keepFinalMs) continue;
    await rm(file);
    removed.push(name);
  }
  return removed;
}
