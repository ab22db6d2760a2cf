import { z } from "zod";
import {
  type Keys,
  defineScript,
  fromPairs,
  type RedisClient,
  redisNow,
  redisTimeLua,
} from "../redis/redis.ts";
import { createHash } from "node:crypto";
import { defineRecord } from "../redis/define-record.ts";
import { fold } from "../text/fold.ts";
import { parseJson } from "../text/parse-json.ts";

/** How many salts a hash has: few enough for Redis's compact encoding. */
const bucketSize = 100;

/**
 * How long the name of a record that is written once is kept (ms). It names a request, an alert, or
 * an incident, which nothing repeats later.
 */
const saidForMs = 90 * 86_400_000;

type Row = [id: string, fields: string[]];

/**
 * Appends a record, only once per name.
 *
 * KEYS records, said   ARGV how long the name is remembered (ms), record
 * → 1 when it was appended, otherwise 0
 */
const appendOnce = `${redisTimeLua}
if not redis.call('SET', KEYS[2], now, 'NX', 'PX', ARGV[1]) then return 0 end
redis.call('XADD', KEYS[1], '*', 'at', now, 'record', ARGV[2])
return 1
`;

/**
 * One step of the trail: a seal with its record and salt, both of which are missing for an erased
 * record; or a record without a seal.
 */
export interface TrailStep {
  seal?: Seal | undefined;
  entry?: TrailEntry | undefined;
  salt?: string | undefined;
}

/**
 * The audit trail in Redis: the stream `audit`, to which every move appends in its own script, and
 * next to it the seals, their salts, and the signed checkpoints. `sealer.ts` writes those.
 */
export type Trail = ReturnType<typeof createTrail>;

export function createTrail(redis: RedisClient, key: Keys) {
  const names = {
    records: key("audit"),
    seals: key("audit", "seals"),
    checkpoints: key("audit", "checkpoints"),
    cut: key("audit", "archived"),
    /** A hash: the number of each redacted record, and the ID of the record that vouches for its text. */
    redacted: key("audit", "redacted"),
    said: (name: string) => key("audit", "said", createHash("sha256").update(name).digest("hex")),
    salts: (seq: number) => key("audit", "salts", Math.floor(seq / bucketSize)),
  };
  const runAppendOnce = defineScript(redis, "gatehouseAuditAppendOnce", appendOnce);

  async function seals(fromSeq: number, most: number): Promise<Seal[]> {
    const rows = await redis.xrange(names.seals, `${fromSeq}-0`, "+", "COUNT", most);
    return rows.map(parseSeal);
  }

  /** Records younger than `after`, up to and including `last`. */
  async function records(range: {
    after?: string | undefined;
    last?: string;
    most: number;
  }): Promise<TrailEntry[]> {
    const from = range.after ? `(${range.after}` : "-";
    const rows = await redis.xrange(names.records, from, range.last ?? "+", "COUNT", range.most);
    return rows.map(parseEntry);
  }

  /**
   * The last entry that is left, and the last ID ever given, which Redis remembers even when
   * entries are deleted or trimmed.
   */
  async function endOf(stream: string): Promise<{ last: Row | undefined; given: string }> {
    if ((await redis.exists(stream)) === 0) return { last: undefined, given: "0-0" };
    const info = z.array(z.unknown()).parse(await redis.xinfo("STREAM", stream));
    const field = (name: string) => info[info.indexOf(name) + 1];
    const last = lastEntry.parse(field("last-entry")) ?? undefined;
    return { last, given: String(field("last-generated-id")) };
  }

  /** The last seal, and the highest number ever given. */
  async function end(): Promise<{ head: Seal | undefined; given: number }> {
    const { last, given } = await endOf(names.seals);
    return { head: last && parseSeal(last), given: Number(given.split("-")[0]) };
  }

  async function head(): Promise<Seal | undefined> {
    return (await end()).head;
  }

  /** The salts of these seals by number. Erased records have none. */
  async function salts(of: readonly Seal[]): Promise<ReadonlyMap<number, string>> {
    const buckets = [...new Set(of.map(({ seq }) => names.salts(seq)))];
    const saltsByBucket = await Promise.all(buckets.map((bucket) => redis.hgetall(bucket)));
    return new Map(
      saltsByBucket.flatMap((all) => Object.entries(all).map(([seq, salt]) => [Number(seq), salt])),
    );
  }

  /**
   * The first seal of a record with this ID or a younger one. This is a binary search, because seals
   * are in the order of their records.
   */
  async function firstSealFrom(id: string): Promise<Seal | undefined> {
    let low = 1;
    let high = (await head())?.seq ?? 0;
    let first: Seal | undefined;
    while (low <= high) {
      const middle = Math.floor((low + high) / 2);
      const [seal] = await seals(middle, 1);
      if (seal && seal.seq <= high && compareIds(seal.id, id) < 0) low = seal.seq + 1;
      else {
        if (seal && seal.seq <= high) first = seal;
        high = middle - 1;
      }
    }
    return first;
  }

  /** The seal of a record, by the record's ID. */
  async function sealOf(id: string): Promise<Seal | undefined> {
    const seal = await firstSealFrom(id);
    return seal?.id === id ? seal : undefined;
  }

  /** Where the trail was cut. Undefined for one that is whole. */
  async function cut(): Promise<Cut | undefined> {
    const text = await redis.get(names.cut);
    return text === null ? undefined : cutRecord.parse(text, names.cut);
  }

  /** The last seal before this number that is still there. */
  async function sealBefore(seq: number): Promise<Seal | undefined> {
    const [row] = await redis.xrevrange(names.seals, `(${seq}-0`, "-", "COUNT", 1);
    return row && parseSeal(row);
  }

  async function hashBefore(seq: number): Promise<string> {
    return ((await sealBefore(seq)) ?? startOf(await cut())).hash;
  }

  /**
   * The seals of these records, in order, each with the hash that it follows and its salt. A record
   * that isn't sealed is missing.
   */
  async function sealsOf(ids: readonly string[], most = 1000) {
    const wanted = new Set(ids);
    const [oldest = ""] = [...wanted].toSorted(compareIds);
    const sealed: { seal: Seal; before: string; salt: string | undefined }[] = [];
    let next = oldest === "" ? undefined : (await firstSealFrom(oldest))?.seq;
    let before = next === undefined ? genesis : await hashBefore(next);
    while (next !== undefined && sealed.length < wanted.size) {
      const page = await seals(next, most);
      const salted = await salts(page.filter(({ id }) => wanted.has(id)));
      for (const seal of page) {
        if (wanted.has(seal.id)) sealed.push({ seal, before, salt: salted.get(seal.seq) });
        before = seal.hash;
      }
      const reached = page.at(-1)?.seq ?? 0;
      next = reached < next ? undefined : reached + 1;
    }
    return sealed;
  }

  /** Whether a later record that is sealed vouches for what is left of a redacted one. */
  async function standingOf(entry: TrailEntry, { seq, at }: Seal): Promise<Standing> {
    const marker = await redis.hget(names.redacted, String(seq));
    const markerEntry = marker === null ? undefined : await trail.find(marker);
    if (!markerEntry || markerEntry.is === "changed" || entry.at !== at) return "changed";
    return vouchedIn(readMarker(markerEntry.record), seq) === payloadOf(entry)
      ? markerEntry.is
      : "changed";
  }

  const trail = {
    redis,
    key,
    names,
    records,
    end,
    head,
    cut,
    firstSealFrom,
    sealBefore,
    seals,
    salts,
    sealOf,
    sealsOf,

    /**
     * The trail in order, in pages: each seal with its record, in between the records that no seal
     * covers, and at the end the records that wait to be sealed.
     */
    async *walk(most = 1000): AsyncGenerator<readonly TrailStep[]> {
      // Archived records may still be in Redis, because they are removed page by page. They are no
      // part of the trail.
      const begin = await cut();
      let after = begin?.id;
      let next = startOf(begin).seq + 1;
      for (;;) {
        const page = await seals(next, most);
        if (page.length === 0) break;
        // Somebody with write access to Redis can put anything into a seal.
        const last = page.findLast((seal) => isStreamId(seal.id))?.id;
        const [salted, entries] = await Promise.all([
          salts(page),
          records({ after, last: last ?? "0-1", most: most * 2 }),
        ]);
        after = last ?? after;
        yield joined(page, salted, entries);
        const reached = page.at(-1)?.seq ?? 0;
        if (reached < next) break;
        next = reached + 1;
      }
      for (let isMore = true; isMore;) {
        const entries = await records({ after, most });
        yield entries.map((entry) => ({ entry }));
        after = entries.at(-1)?.id;
        isMore = entries.length === most;
      }
    },

    /**
     * A record in its current form, with whether that is what was sealed, isn't sealed yet, or
     * differs from what was sealed.
     */
    async find(id: string): Promise<{ record: string; is: Standing } | undefined> {
      const [row] = await redis.xrange(names.records, id, id);
      if (!row) return undefined;
      const entry = parseEntry(row);
      const { record } = entry;
      // The head is read before the seal is looked for. Otherwise a seal that is written in between
      // would make the record look changed.
      const last = await head();
      const seal = await sealOf(id);
      if (seal && entry.salt !== undefined) return { record, is: await standingOf(entry, seal) };
      if (seal) {
        const salt = (await salts([seal])).get(seal.seq);
        return { record, is: isSealedBy(entry, seal, salt) ? "sealed" : "changed" };
      }
      return { record, is: last && compareIds(last.id, id) >= 0 ? "changed" : "waits" };
    },

    /** A record in its current form. */
    async entry(id: string): Promise<TrailEntry | undefined> {
      const [row] = await redis.xrange(names.records, id, id);
      return row && parseEntry(row);
    },

    now: () => redisNow(redis),

    async seal(seq: number): Promise<Seal | undefined> {
      const [first] = await seals(seq, 1);
      return first?.seq === seq ? first : undefined;
    },

    /** Newest first. */
    async recordsBefore(before: string | undefined, most: number): Promise<TrailEntry[]> {
      const to = before ? `(${before}` : "+";
      const rows = await redis.xrevrange(names.records, to, "-", "COUNT", most);
      return rows.map(parseEntry);
    },

    /** The last ID ever given to a record. */
    async lastRecordId(): Promise<string> {
      return (await endOf(names.records)).given;
    },

    async checkpoints(fromSeq: number): Promise<Checkpoint[]> {
      const rows = await redis.xrange(names.checkpoints, `${fromSeq}-0`, "+");
      return rows.map(parseCheckpoint);
    },

    /** Appends a record about the trail itself. Resolves with its ID. */
    async append(record: Readonly<Record<string, unknown>>): Promise<string> {
      const fields = ["at", await redisNow(redis), "record", JSON.stringify(record)];
      return String(await redis.xadd(names.records, "*", ...fields));
    },

    /**
     * Appends a record unless one was appended under this name within 90 days. Resolves with
     * whether it was appended.
     */
    async appendOnce(name: string, record: Readonly<Record<string, unknown>>): Promise<boolean> {
      const keys = [names.records, names.said(name)];
      return (await runAppendOnce(keys, [saidForMs, JSON.stringify(record)])) === 1;
    },
  };
  return trail;
}

/** `waits`: not sealed yet. `changed`: the record isn't what was sealed. */
type Standing = "sealed" | "waits" | "changed";

/**
 * Merges seals with their entries. An entry without a seal comes before the first seal of a younger
 * record.
 */
function joined(
  seals: readonly Seal[],
  salts: ReadonlyMap<number, string>,
  entries: readonly TrailEntry[],
): readonly TrailStep[] {
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  const sealedIds = new Set(seals.map(({ id }) => id));
  const others = entries.filter(({ id }) => !sealedIds.has(id));
  return seals.flatMap((seal) => {
    const older = others.filter(({ id }) => compareIds(id, seal.id) < 0);
    others.splice(0, older.length);
    const step = { seal, entry: byId.get(seal.id), salt: salts.get(seal.seq) };
    return [...older.map((entry) => ({ entry })), step];
  });
}

const lastEntry = z.tuple([z.string(), z.array(z.string())]).nullable();

function parseEntry([id, row]: Row): TrailEntry {
  const { at = "", record = "", salt } = fromPairs(row);
  return { id, at, record, ...(salt === undefined ? {} : { salt }) };
}

function parseSeal([seqId, row]: Row): Seal {
  const { id = "", at = "", payload = "", hash = "" } = fromPairs(row);
  return { seq: seqOf(seqId), id, at, payload, hash };
}

function parseCheckpoint([seqId, row]: Row): Checkpoint {
  const { hash = "", at = "", publicKey = "", signature = "" } = fromPairs(row);
  return { seq: seqOf(seqId), hash, at: Number(at), publicKey, signature };
}

/** `12-0` → 12. Anything else becomes 0, which is no seal's number. */
function seqOf(id: string): number {
  const [seq, rest] = id.split("-");
  return rest === "0" && Number.isSafeInteger(Number(seq)) ? Number(seq) : 0;
}

/**
 * The seal of a record consists of two hashes, both over plain text, so that `printf … | sha256sum`
 * can check them:
 *
 *     payload = SHA-256(salt record)
 *     hash    = SHA-256(0x00 hash-of-the-seal-before ' ' payload ' ' seq ' ' id ' ' at)
 *
 * The chain covers the payload's hash, not the record. So it still verifies when record and salt
 * are erased, and without the 128-bit salt the content can't be guessed.
 */
export interface Seal {
  /** 1, 2, 3, …. A number is skipped only where records were lost, and a record then says so. */
  seq: number;
  /** The record's ID in the stream, `milliseconds-counter`. */
  id: string;
  /** Redis time of the record (ms), as the text that was hashed. */
  at: string;
  payload: string;
  hash: string;
}

/**
 * A record of the stream. `record` is JSON; its exact text was sealed. In a redacted record it is
 * what is left, and `salt` is the salt of that text.
 */
export interface TrailEntry {
  id: string;
  at: string;
  record: string;
  salt?: string;
}

/** The hash that the first seal follows. */
export const genesis = "0".repeat(64);

const saltPattern = /^[0-9a-f]{32}$/;
const hashPattern = /^[0-9a-f]{64}$/;

export function isStreamId(text: string): boolean {
  return /^\d{1,15}-\d{1,15}$/.test(text);
}

export function isHash(text: string): boolean {
  return hashPattern.test(text);
}

export function saltedHash(salt: string, record: string): string {
  return createHash("sha256").update(salt).update(record).digest("hex");
}

/** The salted hash of what is left of a redacted record. */
export const payloadOf = ({ salt = "", record }: TrailEntry): string => saltedHash(salt, record);

export function hashOf(before: string, seal: Omit<Seal, "hash">): string {
  const { payload, seq, id, at } = seal;
  return createHash("sha256").update(`\0${before} ${payload} ${seq} ${id} ${at}`).digest("hex");
}

export function isSealedBy(entry: TrailEntry, seal: Seal, salt: string | undefined): boolean {
  if (salt === undefined || !saltPattern.test(salt)) return false;
  return entry.at === seal.at && saltedHash(salt, entry.record) === seal.payload;
}

/** Compares two stream IDs. Negative when `a` is older. */
export function compareIds(a: string, b: string): number {
  const [aMs = "0", aCount = "0"] = a.split("-");
  const [bMs = "0", bCount = "0"] = b.split("-");
  return Number(aMs) - Number(bMs) || Number(aCount) - Number(bCount);
}

/**
 * Records about the trail itself. They explain why something isn't where the chain says that it is.
 */
const erasedMarker = z.object({
  what: z.literal("audit-erased"),
  who: z.string(),
  why: z.string(),
  erased: z.array(z.object({ seq: z.number(), id: z.string() })),
});
export type ErasedMarker = z.infer<typeof erasedMarker>;

/**
 * A person was removed from these records. `payload` is the salted hash of what is left of each, so
 * that the chain proves it from here on.
 */
const redactedMarker = z.object({
  what: z.literal("audit-redacted"),
  who: z.string(),
  why: z.string(),
  /** Stands for the person: `erased-1`. */
  person: z.string(),
  redacted: z.array(z.object({ seq: z.number(), id: z.string(), payload: z.string() })),
});
export type RedactedMarker = z.infer<typeof redactedMarker>;

const gapMarker = z.object({
  what: z.literal("audit-gap"),
  /**
   * `cut`: the chain ended before an anchored head. `replaced`: it has another seal in the place of
   * the anchored one.
   */
  found: z.enum(["cut", "replaced"]),
  /** The last seal before what is missing, and the number that was given next. */
  after: z.number(),
  next: z.number(),
});
export type GapMarker = z.infer<typeof gapMarker>;

/**
 * Something that is no longer there: a range of record numbers, or a head that was kept elsewhere,
 * as `seq:hash`.
 */
const loss = z.object({ from: z.number(), to: z.number(), head: z.string().optional() });
export type Loss = z.infer<typeof loss>;

/** A person has confirmed these losses, for example after restoring a backup. */
const recordedMarker = z.object({
  what: z.literal("audit-gap-recorded"),
  who: z.string(),
  why: z.string(),
  lost: z.array(loss),
});
export type RecordedMarker = z.infer<typeof recordedMarker>;

const marker = z.discriminatedUnion("what", [
  erasedMarker,
  redactedMarker,
  gapMarker,
  recordedMarker,
]);
type Marker = z.infer<typeof marker>;

/** Undefined for every ordinary record. */
export function readMarker(record: string): Marker | undefined {
  if (!/"audit-(erased|redacted|gap)/.test(record)) return undefined;
  return marker.safeParse(parseJson(record)).data;
}

/** The salted hash that a marker vouches for in the place of this record. */
function vouchedIn(candidate: Marker | undefined, seq: number): string | undefined {
  if (candidate?.what !== "audit-redacted") return undefined;
  return candidate.redacted.find((left) => left.seq === seq)?.payload;
}

/**
 * The end of what was archived and cut off: the trail begins after this seal. It is signed with
 * another text than a checkpoint, so that no signed head can be passed off as a cut.
 */
export const cutShape = z.strictObject({
  seq: z.int().min(1),
  hash: z.string().refine(isHash),
  /** The ID of the seal's record. */
  id: z.string().refine(isStreamId),
  /** Redis time of the cut (ms). */
  at: z.number(),
  /** Ed25519, SPKI, base64. */
  publicKey: z.string(),
  signature: z.string(),
});
export type Cut = z.infer<typeof cutShape>;

export const cutRecord = defineRecord({ name: "cut of the audit trail", schema: cutShape });

export const cutText = (
  chain: string,
  { seq, hash, id, at }: Omit<Cut, "publicKey" | "signature">,
) => `gatehouse-audit-archived ${chain} ${seq} ${hash} ${id} ${at}`;

/** The seal that the first one follows. */
export const startOf = (cut: Cut | undefined): Pick<Seal, "seq" | "hash"> => ({
  seq: cut?.seq ?? 0,
  hash: cut?.hash ?? genesis,
});

/** A signed head. Somebody with write access to Redis but without the key can't forge one. */
export const checkpointShape = z.strictObject({
  seq: z.int().min(0),
  hash: z.string().refine(isHash),
  /** Redis time of the signature (ms). */
  at: z.number(),
  /** Ed25519, SPKI, base64. */
  publicKey: z.string(),
  /** The signature of `signedText`, base64. */
  signature: z.string(),
});
export type Checkpoint = z.infer<typeof checkpointShape>;

export interface AuditFilter {
  targetId?: string;
  /**
   * Used in addition to `targetId`: the target's name when it was recorded. Something that is gone
   * is known only by its name.
   */
  targetName?: string;
  /** The ID of a request, with its safety snapshot, or of a rollout, with its requests. */
  act?: string;
  /** A user ID: what they did, and what was done for them. */
  who?: string;
  /** Kinds of records. */
  what?: readonly string[];
  /** Records at or before this time aren't read (Redis time, ms). */
  after?: number;
  /** The ID of a record: only older ones are read. */
  before?: string;
}

export interface AuditEntry {
  id: string;
  /** Redis time (ms). */
  at: number;
  record: Readonly<Record<string, unknown>>;
}

export interface AuditPage {
  /** Newest first. */
  entries: readonly AuditEntry[];
  /** True when there may be older ones. */
  isMore?: boolean;
}

const readPage = 500;
/** The most records that a query reads, which takes about a quarter of a second. */
const scanMost = 50_000;

interface ReadFrom {
  redis: RedisClient;
  key: Keys;
}

/**
 * The last 50,000 records, newest first, in pages. Returns whether there are older ones. It doesn't
 * verify them, because most of the trail isn't read.
 */
async function* readPages(
  { redis, key }: ReadFrom,
  begin?: string,
): AsyncGenerator<readonly TrailEntry[], boolean> {
  const trail = createTrail(redis, key);
  let before = begin;
  for (let scanned = 0; scanned < scanMost; scanned += readPage) {
    const page = await trail.recordsBefore(before, readPage);
    yield page;
    if (page.length < readPage) return false;
    before = page.at(-1)?.id;
  }
  return true;
}

/** The newest records that match, at most `most`, among the last 50,000. */
export async function readAudit(
  options: ReadFrom & { most: number } & AuditFilter,
): Promise<AuditPage> {
  const { most, after } = options;
  const entries: AuditEntry[] = [];
  const pages = readPages(options, options.before);
  for (;;) {
    const page = await pages.next();
    if (page.done) return page.value ? { entries, isMore: true } : { entries };
    for (const entry of page.value) {
      if (after !== undefined && Number(entry.at) <= after) return { entries };
      const record = parseRecord(entry);
      if (!fits(record, options)) continue;
      entries.push({ id: entry.id, at: Number(entry.at), record });
      if (entries.length === most) return { entries, isMore: true };
    }
  }
}

/** A record that is no longer JSON is shown as it is. */
export function parseRecord({
  record,
}: Pick<TrailEntry, "record">): Readonly<Record<string, unknown>> {
  const parsed = parseJson(record);
  if (typeof parsed === "object" && parsed !== null) return { ...parsed };
  return { what: "unreadable", why: record };
}

/** Whether a record matches every given filter. */
function fits(record: Readonly<Record<string, unknown>>, filter: AuditFilter): boolean {
  const { targetId, targetName, act, who, what: kinds } = filter;
  if (kinds !== undefined && !kinds.includes(String(record["what"]))) return false;
  if (act !== undefined && record["request"] !== act && actIdIn(record) !== act) return false;
  if (who !== undefined && record["who"] !== who && record["requester"] !== who) return false;
  if (targetId === undefined) return true;
  const { target } = record;
  const isCalled =
    targetName !== undefined &&
    typeof target === "object" &&
    target !== null &&
    "name" in target &&
    typeof target.name === "string" &&
    fold(target.name) === fold(targetName);
  return isCalled || targetIdsOf(record).includes(targetId);
}

/**
 * The act that a record belongs to: the request, the rollout that made it, the request that its
 * snapshot saves, an alert, or a proposal. Undefined for a record that stands alone.
 */
export function actIdIn(record: AuditEntry["record"]): string | undefined {
  const { origin } = record;
  if (typeof origin === "object" && origin !== null && "kind" in origin) {
    if (origin.kind === "rollout" && "rollout" in origin) return String(origin.rollout);
    if (origin.kind === "safety" && "request" in origin) return String(origin.request);
  }
  const { roll, request, alert, proposal } = record;
  return [roll, request, alert, proposal].find((id) => typeof id === "string");
}

/** The user IDs in the last 50,000 records, those in the newest records first. */
export async function peopleInTrail(from: ReadFrom): Promise<readonly string[]> {
  const ids = new Set<string>();
  for await (const page of readPages(from))
    for (const { who, requester } of page.map(parseRecord))
      for (const id of [who, requester])
        if (typeof id === "string" && /^[UW][A-Z0-9]{2,}$/.test(id)) ids.add(id);
  return [...ids];
}

function targetIdsOf(record: Readonly<Record<string, unknown>>): readonly unknown[] {
  const { target, targets } = record;
  const targetId: unknown =
    typeof target === "object" && target !== null && "id" in target ? target.id : target;
  return [targetId, ...(Array.isArray(targets) ? (targets as unknown[]) : [])];
}
