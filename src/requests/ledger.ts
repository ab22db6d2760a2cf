import { appendFileSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
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
  /** Last lines that a crash or a full disk cut off, found and ended at start. Each is found once. */
  readonly torn: readonly TornLine[];
  close(): Promise<void>;
}

export interface TornLine {
  file: string;
  /** How many whole entries stand before it. */
  whole: number;
  /** What there is of it. */
  text: string;
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
  const found = readAll(folder);
  const known = found.entries.filter((entry) => entry.at > Date.now() - forgetAfterMs);
  // Only a line break is added, never anything taken away: its process may still be writing
  for (const { file } of found.torn) appendFileSync(path.join(folder, file), "\n");
  const ids = new Set(known.map(idOf));
  const file = await open(path.join(folder, `sends-${workerId}.jsonl`), "a");
  let waiting: { line: string; written: () => void; failed: (error: unknown) => void }[] = [];
  let flushing: Promise<void> | undefined;
  let isTorn = false;

  /** One fsync serves every entry that arrived while the last one was under way. */
  async function flush(): Promise<void> {
    while (waiting.length > 0) {
      const batch = waiting;
      waiting = [];
      try {
        // A full disk may have taken half a line: the next one must not become its other half
        const begin = isTorn ? "\n" : "";
        isTorn = true;
        await file.appendFile(begin + batch.map(({ line }) => line).join(""));
        isTorn = false;
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
    torn: found.torn,
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
function readAll(folder: string): { entries: LedgerEntry[]; torn: TornLine[] } {
  const entries: LedgerEntry[] = [];
  const torn: TornLine[] = [];
  for (const file of readdirSync(folder)) {
    if (!/^sends-.*\.jsonl$/.test(file)) continue;
    const lines = readFileSync(path.join(folder, file), "utf8").split("\n");
    const last = lines.pop() ?? "";
    const whole = lines.flatMap(parseEntry);
    entries.push(...whole, ...parseEntry(last));
    if (last !== "") torn.push({ file, whole: whole.length, text: last.slice(0, 200) });
  }
  return { entries, torn };
}

function parseEntry(line: string): LedgerEntry[] {
  try {
    const entry = JSON.parse(line) as LedgerEntry;
    return typeof entry.request === "string" && typeof entry.attempt === "number" ? [entry] : [];
  } catch {
    return [];
  }
}
