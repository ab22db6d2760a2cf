import { appendFileSync, mkdirSync, readFileSync, readdirSync } from "node:fs";
import { open, readdir, rm, stat } from "node:fs/promises";
import path from "node:path";
import { within } from "../../deadline.ts";
import type { Log } from "../../log/log.ts";
import { privateFile, privateFolder } from "../../regular-file.ts";
import type { Journal } from "./journal.ts";
import { keepFinalMs } from "./record.ts";

export type Ledger = Awaited<ReturnType<typeof openLedger>>;

interface TornLine {
  file: string;
  /** Number of whole entries before it. */
  whole: number;
  text: string;
}

interface LedgerEntry {
  request: string;
  attempt: number;
  /** Of its claim; undefined in entries of versions without one. */
  nonce?: string | undefined;
  /** Wall clock, ms: for people and for dropping old entries, never for order. */
  at: number;
  command: string;
  target: string;
}

const forgetAfterMs = 30 * 24 * 3600_000;
/** The write timeout is sliced: a process that was paused loses one slice, not the whole timeout. */
const writeSlices = 8;
const writeSliceMs = 250;

const idOf = (entry: Pick<LedgerEntry, "request" | "attempt">) =>
  `${entry.request} ${entry.attempt}`;

/**
 * Write-ahead log of this process's sends, outside Redis: one append-only file in `folder`, each line on the disk before the
 * call leaves. A send recorded here is never repeated, and one that Redis doesn't know freezes all changes. Reads those of the
 * other processes there.
 */
export async function openLedger(folder: string, workerId: string) {
  mkdirSync(folder, privateFolder);
  const found = readAll(folder);
  const known = found.entries.filter((entry) => entry.at > Date.now() - forgetAfterMs);
  // Only appends a line break: its process may still be writing
  for (const { file } of found.torn) appendFileSync(path.join(folder, file), "\n");
  const ids = new Set(known.map(idOf));
  const file = await open(path.join(folder, `sends-${workerId}.jsonl`), "a", privateFile.mode);
  let isTorn = false;
  const flushes = createBatches(async (lines: readonly string[]) => {
    // After half a line on a full disk, the next one needs a line of its own
    const begin = isTorn ? "\n" : "";
    isTorn = true;
    await file.appendFile(begin + lines.join(""));
    isTorn = false;
    await file.datasync();
    return lines;
  });

  return {
    /** Resolves when it is on the disk; false when this attempt was already recorded and must not be sent. */
    async write(entry: LedgerEntry): Promise<boolean> {
      if (ids.has(idOf(entry))) return false;
      ids.add(idOf(entry));
      await inTime(flushes.add(`${JSON.stringify(entry)}\n`));
      known.push(entry);
      return true;
    },
    /** Entries of all processes at start, and those written since. */
    entries: (): readonly LedgerEntry[] => known,
    /** Last lines cut off by a crash or a full disk; ended at start, so each is found once. */
    torn: found.torn,
    async close(): Promise<void> {
      await flushes.ended();
      await file.close();
    },
  };
}

/** One flush, or one wait, serves all that came during the last one: `serve` answers each of a batch, in its order. */
export function createBatches<One, Answer>(
  serve: (batch: readonly One[]) => Promise<readonly Answer[]>,
) {
  let waiting: One[] = [];
  let next: Promise<readonly Answer[]> | undefined;
  let last: Promise<unknown> = Promise.resolve();

  function begin(): Promise<readonly Answer[]> {
    const batch = waiting;
    waiting = [];
    next = undefined;
    return serve(batch);
  }

  return {
    async add(one: One): Promise<Answer | undefined> {
      const place = waiting.push(one) - 1;
      if (next === undefined) last = next = last.then(begin, begin);
      return (await next)[place];
    },
    ended: () => last.catch(() => undefined),
  };
}

async function inTime(onDisk: Promise<unknown>): Promise<void> {
  const written = onDisk.then(() => true);
  for (let slice = 0; slice < writeSlices; slice++)
    if (await within(writeSliceMs, written, () => false)) return;
  throw new Error("the disk did not store the entry in time");
}

/** Skips torn lines: the line comes before the call, so that call was never made. */
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

/**
 * Compares this worker's sends with the journal. A send missing there means that Redis was rolled back or emptied: all
 * changes freeze until a person has checked. Resolves with those that no freeze had named.
 */
export async function checkLedger(
  ledger: Ledger,
  store: Journal,
  log: Log,
  /** Checks only this many of the newest entries. */
  newest = Infinity,
): Promise<LedgerEntry[]> {
  const behind: LedgerEntry[] = [];
  const entries = ledger.entries().slice(-newest);
  for (let start = 0; start < entries.length; start += 500) {
    const page = entries.slice(start, start + 500);
    const claims = await store.claimsOf(page);
    behind.push(...page.filter((entry, at) => isForgotten(entry, claims[at])));
  }
  const named = await store.named(behind.map(sendId));
  const missing = behind.filter((entry) => !named.has(sendId(entry)));
  if (missing.length > 0) {
    log.error("ledger.ahead-of-journal", { count: missing.length, first: missing.slice(0, 20) });
    // A request with several attempts may lack several sends
    const requests = [...new Map(missing.map((entry) => [entry.request, entry])).values()];
    const some = requests
      .slice(0, 5)
      .map(({ command, target, request }) => `${command} of ${target} (${request})`)
      .join(", ");
    // A freeze names few of them, so the trail gets the list
    await store.note({ what: "ledger-ahead", count: missing.length, sends: missing.slice(0, 200) });
    await store.freeze({
      by: "Gatehouse",
      cause: "sends-lost",
      reason: `Redis lost ${requests.length} sent ${requests.length === 1 ? "request" : "requests"}: ${some}`,
      sends: missing.map(sendId),
    });
  }
  return missing;
}

/** The journal has fewer attempts, or another worker claimed the same one after Redis had lost this claim. */
function isForgotten(
  { attempt, nonce }: LedgerEntry,
  claim: { attempts: number; nonce: string | undefined } | undefined,
): boolean {
  if (claim === undefined || claim.attempts < attempt) return true;
  return nonce !== undefined && claim.nonce !== nonce;
}

function sendId({ request, attempt, nonce }: LedgerEntry): string {
  return [request, attempt, nonce].join(" ").trim();
}

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
