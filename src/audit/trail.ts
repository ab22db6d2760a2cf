import { createHash } from "node:crypto";
import { z } from "zod";
import {
  type Keys,
  type RedisClient,
  defineScript,
  fromPairs,
  redisNow,
  redisTimeLua,
} from "../redis/redis.ts";
import type { Checkpoint } from "./checkpoint.ts";
import { type Cut, cutRecord } from "./cut.ts";
import { payloadVouchedBy } from "./markers.ts";
import { type Seal, type TrailEntry, compareIds, isSealedBy, payloadOf } from "./seal.ts";

/** How many salts a hash has: few enough for Redis's compact encoding. */
const bucketSize = 100;

/**
 * How long the name of a record that is written once is kept (ms). It names a request, an alert, or
 * an incident, which nothing repeats later.
 */
const nameKeptMs = 90 * 86_400_000;

/** A record as whoever writes it gives it, and as it is read. */
export type AuditRecord = Readonly<Record<string, unknown>>;

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

/** `waits`: not sealed yet. `changed`: the record isn't what was sealed. */
type Standing = "sealed" | "waits" | "changed";

/**
 * The audit trail in Redis: the stream `audit`, to which every move appends in its own script, and
 * next to it the seals, their salts, and the signed checkpoints. `sealer.ts` writes those.
 */
export class Trail {
  readonly redis: RedisClient;
  readonly key: Keys;
  readonly names;
  readonly #runAppendOnce;

  constructor(redis: RedisClient, key: Keys) {
    this.redis = redis;
    this.key = key;
    this.#runAppendOnce = defineScript(redis, "gatehouseAuditAppendOnce", appendOnce);
    this.names = {
      records: key("audit"),
      seals: key("audit", "seals"),
      checkpoints: key("audit", "checkpoints"),
      cut: key("audit", "archived"),
      /** A hash: the number of each redacted record, and the ID of the record that vouches for its text. */
      redacted: key("audit", "redacted"),
      /** A hash: who is being removed from the trail, and how many records were redacted so far. */
      erasing: key("audit", "erasing"),
      writtenOnce: (name: string) =>
        key("audit", "said", createHash("sha256").update(name).digest("hex")),
      salts: (seq: number) => key("audit", "salts", Math.floor(seq / bucketSize)),
    };
  }

  now(): Promise<number> {
    return redisNow(this.redis);
  }

  // Records

  /** Appends a record about the trail itself. Resolves with its ID. */
  async append(record: AuditRecord): Promise<string> {
    const fields = ["at", await this.now(), "record", JSON.stringify(record)];
    return String(await this.redis.xadd(this.names.records, "*", ...fields));
  }

  /**
   * Appends a record unless one was appended under this name within 90 days. Resolves with
   * whether it was appended.
   */
  async appendOnce(name: string, record: AuditRecord): Promise<boolean> {
    const keys = [this.names.records, this.names.writtenOnce(name)];
    return (await this.#runAppendOnce(keys, [nameKeptMs, JSON.stringify(record)])) === 1;
  }

  /** Records younger than `after`, up to and including `last`, oldest first. */
  async records({
    after,
    last = "+",
    most,
  }: {
    after?: string | undefined;
    last?: string | undefined;
    most: number;
  }): Promise<TrailEntry[]> {
    const from = after ? `(${after}` : "-";
    const rows = await this.redis.xrange(this.names.records, from, last, "COUNT", most);
    return rows.map(parseEntry);
  }

  /** Records older than `before`, newest first. */
  async recordsBefore(before: string | undefined, most: number): Promise<TrailEntry[]> {
    const to = before ? `(${before}` : "+";
    const rows = await this.redis.xrevrange(this.names.records, to, "-", "COUNT", most);
    return rows.map(parseEntry);
  }

  /** A record in its current form. */
  async entry(id: string): Promise<TrailEntry | undefined> {
    const [row] = await this.redis.xrange(this.names.records, id, id);
    return row && parseEntry(row);
  }

  /** The last ID ever given to a record. */
  async lastRecordId(): Promise<string> {
    return (await this.#endOf(this.names.records)).lastId;
  }

  /**
   * A record in its current form, with whether that is what was sealed, isn't sealed yet, or
   * differs from what was sealed.
   */
  async find(id: string): Promise<{ record: string; standing: Standing } | undefined> {
    const entry = await this.entry(id);
    if (!entry) return undefined;
    const { record } = entry;
    // The head is read before the seal is looked for. Otherwise a seal that is written in between
    // would make the record look changed.
    const last = await this.head();
    const seal = await this.sealOf(id);
    if (seal && entry.salt !== undefined)
      return { record, standing: await this.#standingOfRedacted(entry, seal) };
    if (seal) {
      const salt = (await this.salts([seal])).get(seal.seq);
      return { record, standing: isSealedBy(entry, seal, salt) ? "sealed" : "changed" };
    }
    return { record, standing: last && compareIds(last.id, id) >= 0 ? "changed" : "waits" };
  }

  /** Whether a later record that is sealed vouches for what is left of a redacted one. */
  async #standingOfRedacted(entry: TrailEntry, { seq, at }: Seal): Promise<Standing> {
    const markerId = await this.redis.hget(this.names.redacted, String(seq));
    const marker = markerId === null ? undefined : await this.find(markerId);
    if (!marker || marker.standing === "changed" || entry.at !== at) return "changed";
    return payloadVouchedBy(marker.record, seq) === payloadOf(entry) ? marker.standing : "changed";
  }

  // Seals

  /** Seals from this number on. */
  async seals(fromSeq: number, most: number): Promise<Seal[]> {
    const rows = await this.redis.xrange(this.names.seals, `${fromSeq}-0`, "+", "COUNT", most);
    return rows.map(parseSeal);
  }

  async seal(seq: number): Promise<Seal | undefined> {
    const [first] = await this.seals(seq, 1);
    return first?.seq === seq ? first : undefined;
  }

  /** The seal of a record, by the record's ID. */
  async sealOf(id: string): Promise<Seal | undefined> {
    const seal = await this.firstSealFrom(id);
    return seal?.id === id ? seal : undefined;
  }

  /**
   * The first seal of a record with this ID or a younger one. This is a binary search, because seals
   * are in the order of their records.
   */
  async firstSealFrom(id: string): Promise<Seal | undefined> {
    let low = 1;
    let high = (await this.head())?.seq ?? 0;
    let first: Seal | undefined;
    while (low <= high) {
      const middle = Math.floor((low + high) / 2);
      const [seal] = await this.seals(middle, 1);
      if (seal && seal.seq <= high && compareIds(seal.id, id) < 0) low = seal.seq + 1;
      else {
        if (seal && seal.seq <= high) first = seal;
        high = middle - 1;
      }
    }
    return first;
  }

  /** The last seal before this number that is still there. */
  async sealBefore(seq: number): Promise<Seal | undefined> {
    const [row] = await this.redis.xrevrange(this.names.seals, `(${seq}-0`, "-", "COUNT", 1);
    return row && parseSeal(row);
  }

  /** The salts of these seals by number. Erased records have none. */
  async salts(of: readonly Seal[]): Promise<ReadonlyMap<number, string>> {
    const buckets = [...new Set(of.map(({ seq }) => this.names.salts(seq)))];
    const saltsByBucket = await Promise.all(buckets.map((bucket) => this.redis.hgetall(bucket)));
    return new Map(
      saltsByBucket.flatMap((all) => Object.entries(all).map(([seq, salt]) => [Number(seq), salt])),
    );
  }

  /** The last seal, and the highest number ever given. */
  async end(): Promise<{ head: Seal | undefined; lastSeq: number }> {
    const { last, lastId } = await this.#endOf(this.names.seals);
    return { head: last && parseSeal(last), lastSeq: Number(lastId.split("-")[0]) };
  }

  async head(): Promise<Seal | undefined> {
    return (await this.end()).head;
  }

  async checkpoints(fromSeq: number): Promise<Checkpoint[]> {
    const rows = await this.redis.xrange(this.names.checkpoints, `${fromSeq}-0`, "+");
    return rows.map(parseCheckpoint);
  }

  /** Where the trail was cut. Undefined for one that is whole. */
  async cut(): Promise<Cut | undefined> {
    const text = await this.redis.get(this.names.cut);
    return text === null ? undefined : cutRecord.parse(text, this.names.cut);
  }

  /**
   * The last entry that is left, and the last ID ever given, which Redis remembers even when
   * entries are deleted or trimmed.
   */
  async #endOf(stream: string): Promise<{ last: Row | undefined; lastId: string }> {
    if ((await this.redis.exists(stream)) === 0) return { last: undefined, lastId: "0-0" };
    const info = z.array(z.unknown()).parse(await this.redis.xinfo("STREAM", stream));
    const field = (name: string) => info[info.indexOf(name) + 1];
    const last = lastEntry.parse(field("last-entry")) ?? undefined;
    return { last, lastId: String(field("last-generated-id")) };
  }
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
