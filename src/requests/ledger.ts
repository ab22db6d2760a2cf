import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { open } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * What this process has sent, outside Redis: one small append-only file per process, each line on the disk before the
 * call leaves. It is the fence when Redis was rolled back or emptied (reliability.md section 2): a send that stands here
 * is never made again, and one that Redis doesn't know freezes all changes.
 */
export interface Ledger {
  /** On the disk when it resolves. False when that attempt stands here already: then it must not be sent. */
  write(entry: LedgerEntry): Promise<boolean>;
  /** All entries found in the folder at start, and since. */
  entries(): readonly LedgerEntry[];
  close(): Promise<void>;
}

export interface LedgerEntry {
  request: string;
  attempt: number;
  /** Wall clock, ms: for people and for forgetting old entries, never for deciding an order. */
  at: number;
  command: string;
  target: string;
}

const forgetAfterMs = 30 * 24 * 3600_000;
/** Waited for in slices: a process that was stopped for a while loses one of them, not all its patience with the disk. */
const writeSlices = 8;
const writeSliceMs = 250;

const idOf = (entry: Pick<LedgerEntry, "request" | "attempt">) =>
  `${entry.request} ${entry.attempt}`;

/** Opens the ledger of this process in `folder` and reads those that other processes left there. */
export async function openLedger(folder: string, workerId: string): Promise<Ledger> {
  mkdirSync(folder, { recursive: true });
  const known: LedgerEntry[] = readAll(folder).filter(
    (entry) => entry.at > Date.now() - forgetAfterMs,
  );
  const ids = new Set(known.map(idOf));
  const file = await open(path.join(folder, `sends-${workerId}.jsonl`), "a");
  let waiting: { line: string; written: () => void; failed: (error: unknown) => void }[] = [];
  let flushing: Promise<void> | undefined;

  /** One fsync serves every entry that arrived while the last one was under way. */
  async function flush(): Promise<void> {
    while (waiting.length > 0) {
      const batch = waiting;
      waiting = [];
      try {
        await file.appendFile(batch.map(({ line }) => line).join(""));
        await file.datasync();
        for (const { written } of batch) written();
      } catch (error) {
        for (const { failed } of batch) failed(error);
      }
    }
    flushing = undefined;
  }

  return {
    async write(entry) {
      if (ids.has(idOf(entry))) return false;
      ids.add(idOf(entry));
      const onDisk = new Promise<void>((written, failed) => {
        waiting.push({ line: `${JSON.stringify(entry)}\n`, written, failed });
      });
      flushing ??= flush();
      await within(onDisk);
      known.push(entry);
      return true;
    },
    entries: () => known,
    async close() {
      await flushing;
      await file.close();
    },
  };
}

async function within(onDisk: Promise<void>): Promise<void> {
  const written = onDisk.then(() => true);
  for (let slice = 0; slice < writeSlices; slice++) {
    const giveUp = new AbortController();
    const waited = sleep(writeSliceMs, false, { signal: giveUp.signal }).catch(() => false);
    const isWritten = await Promise.race([written, waited]);
    giveUp.abort();
    if (isWritten) return;
  }
  throw new Error("the disk did not take the entry in time");
}

/** A line torn by a crash is skipped: its call was never made, because the line comes first. */
function readAll(folder: string): LedgerEntry[] {
  const entries: LedgerEntry[] = [];
  for (const name of readdirSync(folder)) {
    if (!/^sends-.*\.jsonl$/.test(name)) continue;
    for (const line of readFileSync(path.join(folder, name), "utf8").split("\n")) {
      try {
        const entry = JSON.parse(line) as LedgerEntry;
        if (typeof entry.request === "string" && typeof entry.attempt === "number")
          entries.push(entry);
      } catch {
        continue;
      }
    }
  }
  return entries;
}
