import { appendFileSync, mkdirSync, readFileSync, readdirSync } from "node:fs";
import { open, readdir, rm, stat } from "node:fs/promises";
import path from "node:path";
import * as z from "zod";
import { within } from "../../deadline.ts";
import type { Log } from "../../log/log.ts";
import { privateFile, privateFolder } from "../../regular-file.ts";
import { parseJson } from "../../text/parse-json.ts";
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
  /** The nonce of its claim. Undefined in entries of releases that had none. */
  nonce?: string | undefined;
  /** Wall clock (ms). It is for people and for dropping old entries, never for an order. */
  at: number;
  command: string;
  target: string;
}

/**
 * A line counts as soon as it names its send. One whose time can't be read may be new, and a nonce
 * that can't be read is no claim's.
 */
const entrySchema = z.object({
  request: z.string(),
  attempt: z.number(),
  nonce: z.string().optional().catch("unreadable"),
  at: z.number().catch(() => Date.now()),
  command: z.string().catch("a change"),
  target: z.string().catch("a target that can't be read"),
});

const forgetAfterMs = 30 * 24 * 3600_000;
/**
 * The write timeout is cut in slices, so that a process that was paused loses one slice and not the
 * whole timeout.
 */
const writeSlices = 8;
const writeSliceMs = 250;

const idOf = (entry: Pick<LedgerEntry, "request" | "attempt">) =>
  `${entry.request} ${entry.attempt}`;

/**
 * A write-ahead log of this process's sends, outside of Redis: one append-only file in `folder`, in
 * which each line is on the disk before its call leaves. A send recorded here is never repeated,
 * and one that Redis doesn't know freezes all changes. It also reads the files of the other
 * processes there.
 */
export async function openLedger(folder: string, workerId: string) {
  mkdirSync(folder, privateFolder);
  const contents = readAll(folder);
  const known = contents.entries.filter((entry) => entry.at > Date.now() - forgetAfterMs);
  // Only a line break is added, because its process may still be writing.
  for (const { file } of contents.torn) appendFileSync(path.join(folder, file), "\n");
  const ids = new Set(known.map(idOf));
  const file = await open(path.join(folder, `sends-${workerId}.jsonl`), "a", privateFile.mode);
  let isTorn = false;
  const flushes = createBatches(async (lines: readonly string[]) => {
    // After half a line on a full disk, the next line must start on one of its own.
    const begin = isTorn ? "\n" : "";
    isTorn = true;
    await file.appendFile(begin + lines.join(""));
    isTorn = false;
    await file.datasync();
    return lines;
  });

  return {
    /**
     * Resolves once the entry is on the disk, or when this attempt was recorded before and must not
     * be sent.
     */
    async write(entry: LedgerEntry): Promise<"written" | "recorded-before"> {
      if (ids.has(idOf(entry))) return "recorded-before";
      ids.add(idOf(entry));
      await inTime(flushes.add(`${JSON.stringify(entry)}\n`));
      known.push(entry);
      return "written";
    },
    /** The entries of all processes at the start, and those that this one wrote since. */
    entries: (): readonly LedgerEntry[] => known,
    /**
     * Last lines that a crash or a full disk cut off. They are ended at the start, so that each is
     * found once.
     */
    torn: contents.torn,
    async close(): Promise<void> {
      await flushes.ended();
      await file.close();
    },
  };
}

/**
 * Puts calls that arrive during a flush or a wait into one batch for the next one. `serve` answers
 * each member of a batch, in the order of the batch.
 */
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
    async add(member: One): Promise<Answer | undefined> {
      const place = waiting.push(member) - 1;
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

/**
 * Reads all entries, without torn lines: a line is written before its call, so the call of a torn
 * line was never made.
 */
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
  const entry = entrySchema.safeParse(parseJson(line)).data;
  return entry ? [entry] : [];
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
    // A request with several attempts may miss several sends.
    const requests = [...new Map(missing.map((entry) => [entry.request, entry])).values()];
    const some = requests
      .slice(0, 5)
      .map(({ command, target, request }) => `${command} of ${target} (${request})`)
      .join(", ");
    // A freeze names only a few of them, so the trail gets the list.
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

/**
 * Whether the journal doesn't have this send: it has fewer attempts, or another worker claimed the
 * same attempt after Redis had lost this claim.
 */
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
 * Removes the ledgers of workers that are gone, once nothing in them can be in the journal any
 * more. The comparison with the journal looks back for a third of that time. Only the process that
 * holds the directory may call it. `now` is the earliest of the clocks at hand (ms), so that a
 * clock that is ahead can't make a ledger old. Resolves with the names of the files.
 */
export async function removeOldLedgers(folder: string, now: number): Promise<string[]> {
  const removed: string[] = [];
  for (const name of await readdir(folder)) {
    if (!/^sends-.*\.jsonl$/.test(name)) continue;
    const file = path.join(folder, name);
    // Each entry that was appended has set the file's time.
    const { mtimeMs } = await stat(file);
    if (mtimeMs > now - keepFinalMs) continue;
    await rm(file);
    removed.push(name);
  }
  return removed;
}
