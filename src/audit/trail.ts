import { z } from "zod";
import { type Keys, defineScript, type RedisClient, redisNow } from "../redis/redis.ts";
import { compareIds, type Entry, isSealedBy, type Seal } from "./chain.ts";
import type { Checkpoint } from "./anchors.ts";
import * as scripts from "./scripts.ts";

/** Salts per hash: few enough for Redis's compact encoding. */
const bucketSize = 100;

type Row = [id: string, fields: string[]];

/**
 * The audit trail in Redis: the stream `audit`, which every move appends to in its own script, and beside it the seals,
 * their salts, and the signed checkpoints. `sealer.ts` writes them.
 */
export type Trail = ReturnType<typeof createTrail>;

export function createTrail(redis: RedisClient, key: Keys) {
  const names = {
    records: key("audit"),
    seals: key("audit", "seals"),
    checkpoints: key("audit", "checkpoints"),
    lease: key("audit", "sealer"),
    said: key("audit", "said"),
    salts: (seq: number) => key("audit", "salts", Math.floor(seq / bucketSize)),
  };
  const runAppend = defineScript(redis, "gatehouseAuditAppend", scripts.append);
  const runAppendOnce = defineScript(redis, "gatehouseAuditAppendOnce", scripts.appendOnce);

  async function seals(fromSeq: number, most: number): Promise<Seal[]> {
    const rows = await redis.xrange(names.seals, `${fromSeq}-0`, "+", "COUNT", most);
    return rows.map(parseSeal);
  }

  async function head(): Promise<Seal | undefined> {
    const [row] = await redis.xrevrange(names.seals, "+", "-", "COUNT", 1);
    return row && parseSeal(row);
  }

  /** Erased records have none. */
  async function salts(of: readonly Seal[]): Promise<ReadonlyMap<number, string>> {
    const buckets = [...new Set(of.map(({ seq }) => names.salts(seq)))];
    const found = await Promise.all(buckets.map((bucket) => redis.hgetall(bucket)));
    return new Map(
      found.flatMap((all) => Object.entries(all).map(([seq, salt]) => [Number(seq), salt])),
    );
  }

  /** By the ID of its record. Binary search: seals are in the order of their records. */
  async function sealOf(id: string): Promise<Seal | undefined> {
    let low = 1;
    let high = (await head())?.seq ?? 0;
    while (low <= high) {
      const middle = Math.floor((low + high) / 2);
      const [seal] = await seals(middle, 1);
      if (!seal || seal.seq > high) high = middle - 1;
      else {
        const order = compareIds(seal.id, id);
        if (order === 0) return seal;
        if (order < 0) low = seal.seq + 1;
        else high = middle - 1;
      }
    }
    return undefined;
  }

  return {
    redis,
    key,
    names,
    seals,
    head,
    salts,
    sealOf,

    /** A record as it stands: as it was sealed, not sealed yet, or other than it was sealed. */
    async find(
      id: string,
    ): Promise<{ record: string; is: "sealed" | "waits" | "changed" } | undefined> {
      const [row] = await redis.xrange(names.records, id, id);
      if (!row) return undefined;
      const entry = parseEntry(row);
      const { record } = entry;
      const seal = await sealOf(id);
      if (seal) {
        const salt = (await salts([seal])).get(seal.seq);
        return { record, is: isSealedBy(entry, seal, salt) ? "sealed" : "changed" };
      }
      const last = await head();
      return { record, is: last && compareIds(last.id, id) >= 0 ? "changed" : "waits" };
    },

    now: () => redisNow(redis),

    async seal(seq: number): Promise<Seal | undefined> {
      const [found] = await seals(seq, 1);
      return found?.seq === seq ? found : undefined;
    },

    /** The last seal with a lower number. */
    async sealBefore(seq: number): Promise<Seal | undefined> {
      const [row] = await redis.xrevrange(names.seals, `(${seq}-0`, "-", "COUNT", 1);
      return row && parseSeal(row);
    },

    /** Records younger than `after`, up to and including `last`. */
    async records(range: { after?: string; last?: string; most: number }): Promise<Entry[]> {
      const from = range.after ? `(${range.after}` : "-";
      const rows = await redis.xrange(names.records, from, range.last ?? "+", "COUNT", range.most);
      return rows.map(parseEntry);
    },

    /** Newest first. */
    async recordsBefore(before: string | undefined, most: number): Promise<Entry[]> {
      const to = before ? `(${before}` : "+";
      const rows = await redis.xrevrange(names.records, to, "-", "COUNT", most);
      return rows.map(parseEntry);
    },

    /** The highest numbers ever given; Redis keeps them when entries are deleted or trimmed. */
    async lastGiven(): Promise<{ seq: number; id: string }> {
      const [seq, id] = await Promise.all([names.seals, names.records].map(lastId));
      return { seq: Number(seq?.split("-")[0] ?? 0), id: id ?? "0-0" };
    },

    async checkpoints(fromSeq: number): Promise<Checkpoint[]> {
      const rows = await redis.xrange(names.checkpoints, `${fromSeq}-0`, "+");
      return rows.map(parseCheckpoint);
    },

    async lastCheckpoint(): Promise<Checkpoint | undefined> {
      const [row] = await redis.xrevrange(names.checkpoints, "+", "-", "COUNT", 1);
      return row && parseCheckpoint(row);
    },

    /** Appends a record about the trail itself. Resolves to its ID. */
    async append(record: Readonly<Record<string, unknown>>): Promise<string> {
      return String(await runAppend([names.records], [JSON.stringify(record)]));
    },

    /** Appends unless done before under this name. */
    async appendOnce(name: string, record: Readonly<Record<string, unknown>>): Promise<boolean> {
      const keys = [names.records, names.said];
      return (await runAppendOnce(keys, [name, JSON.stringify(record)])) === 1;
    },
  };

  async function lastId(stream: string): Promise<string | undefined> {
    if ((await redis.exists(stream)) === 0) return undefined;
    const info = z.array(z.unknown()).parse(await redis.xinfo("STREAM", stream));
    return String(info[info.indexOf("last-generated-id") + 1]);
  }
}

export function parseEntry([id, fields]: Row): Entry {
  const named = pairs(fields);
  return { id, at: named.get("at") ?? "", record: named.get("record") ?? "" };
}

export function parseSeal([seqId, fields]: Row): Seal {
  const named = pairs(fields);
  const text = (name: string) => named.get(name) ?? "";
  const seq = seqOf(seqId);
  return { seq, id: text("id"), at: text("at"), payload: text("payload"), hash: text("hash") };
}

function parseCheckpoint([seqId, fields]: Row): Checkpoint {
  const named = pairs(fields);
  const text = (name: string) => named.get(name) ?? "";
  return {
    seq: seqOf(seqId),
    hash: text("hash"),
    at: Number(text("at")),
    publicKey: text("publicKey"),
    signature: text("signature"),
  };
}

/** `12-0` → 12; 0, which is no seal's number, for anything else. */
function seqOf(id: string): number {
  const [seq, rest] = id.split("-");
  return rest === "0" && Number.isSafeInteger(Number(seq)) ? Number(seq) : 0;
}

function pairs(fields: readonly string[]): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (let at = 0; at + 1 < fields.length; at += 2)
    found.set(fields[at] ?? "", fields[at + 1] ?? "");
  return found;
}
