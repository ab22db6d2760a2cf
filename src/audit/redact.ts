import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { UserError } from "../errors.ts";
import { defineScript, redisTimeLua } from "../redis/redis.ts";
import { beginRewriting, busy, leaseMs } from "./erase.ts";
import {
  type RedactedMarker,
  type Trail,
  type TrailEntry,
  compareIds,
  isSealedBy,
  payloadOf,
} from "./trail.ts";

const pageSize = 500;
/** How many records one record vouches for, so that each stays readable in a terminal. */
const mostPerMarker = 500;
/** How long records may wait for their seals (ms). A gateway seals twice a second. */
const sealedWithinMs = 30_000;
const sealPauseMs = 200;
/** Records that come meanwhile may name the person, too. */
const mostPasses = 5;

/**
 * Copies a page of records into a new stream, some of them with what is left of them.
 *
 * KEYS records, rewriting, copy
 * ARGV token, lease (ms), last ID copied or '', last ID of the page, by ID: what is left, and its salt
 * → 1, or 0 when another process rewrites
 */
const copyLua = `
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
redis.call('PEXPIRE', KEYS[2], ARGV[2])
local left = cjson.decode(ARGV[5])
local from = ARGV[3] == '' and '-' or '(' .. ARGV[3]
for _, entry in ipairs(redis.call('XRANGE', KEYS[1], from, ARGV[4])) do
  local id, fields = entry[1], entry[2]
  if left[id] then
    local at = ''
    for i = 1, #fields, 2 do if fields[i] == 'at' then at = fields[i + 1] end end
    redis.call('XADD', KEYS[3], id, 'at', at, 'record', left[id].record, 'salt', left[id].salt)
  else
    redis.call('XADD', KEYS[3], id, unpack(fields))
  end
end
redis.call('PEXPIRE', KEYS[3], ARGV[2])
return 1
`;

/**
 * Puts the copy in the place of the stream, unless there are newer records. In the same step it
 * adds the records that vouch for what is left, removes the salts of the former texts, and counts.
 *
 * KEYS records, rewriting, copy, redacted, progress, ...buckets of salts
 * ARGV token, last ID copied, the records as JSON, by number of a bucket: the fields to remove
 * → 'done' | 'more' | 'lost' (another process rewrites)
 */
const endLua = `${redisTimeLua}
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 'lost' end
if #redis.call('XRANGE', KEYS[1], '(' .. ARGV[2], '+', 'COUNT', 1) > 0 then return 'more' end
for _, text in ipairs(cjson.decode(ARGV[3])) do
  local id = redis.call('XADD', KEYS[1], '*', 'at', now, 'record', text)
  redis.call('XADD', KEYS[3], id, 'at', now, 'record', text)
  for _, left in ipairs(cjson.decode(text).redacted) do
    redis.call('HSET', KEYS[4], string.format('%.0f', left.seq), id)
    redis.call('HINCRBY', KEYS[5], 'records', 1)
  end
end
for bucket, fields in ipairs(cjson.decode(ARGV[4])) do redis.call('HDEL', KEYS[5 + bucket], unpack(fields)) end
redis.call('PERSIST', KEYS[3])
redis.call('RENAME', KEYS[3], KEYS[1])
redis.call('DEL', KEYS[2])
return 'done'
`;

const endReply = z.enum(["done", "more", "lost"]);

type On = Pick<Trail, "redis" | "key" | "names" | "records" | "head" | "sealsOf">;

/** Who removes a person from the trail, and what takes the place of each record. */
export interface Redaction extends Pick<RedactedMarker, "who" | "why" | "person"> {
  /** Returns the text of a record without the person; the same text where it doesn't name them. */
  redact: (record: string) => string;
  /** The hash whose field `records` counts the redacted records, in the step that redacts them. */
  progress: string;
}

/**
 * Replaces the text of every record that names a person by what is left of it. The seals stay, so
 * the chain still verifies; records that say who did it, and why, vouch for what is left by its
 * salted hash. Either the whole trail is rewritten or nothing is, and a second run finishes.
 *
 * Throws a UserError when a record isn't what was sealed, when nobody seals, and when someone else
 * is erasing.
 */
export async function redactTrail(trail: On, redaction: Redaction): Promise<void> {
  for (let pass = 0; pass < mostPasses; pass += 1) {
    if (!(await areNamedSealed(trail, redaction))) return;
    await rewrite(trail, redaction);
  }
  throw new UserError("New records keep naming this person", "run the command again later");
}

/** The ID of the newest record in which there is something to remove. */
export async function newestNaming(
  { records }: Pick<Trail, "records">,
  redact: Redaction["redact"],
): Promise<string | undefined> {
  let newest: string | undefined;
  let after: string | undefined;
  for (;;) {
    const page = await records({ after, most: pageSize });
    newest = page.findLast(({ record }) => redact(record) !== record)?.id ?? newest;
    if (page.length < pageSize) return newest;
    after = page.at(-1)?.id;
  }
}

/** False when no record names the person. Waits until all that do are sealed. */
async function areNamedSealed(trail: On, { redact }: Redaction): Promise<boolean> {
  const newest = await newestNaming(trail, redact);
  if (newest === undefined) return false;
  const until = performance.now() + sealedWithinMs;
  for (;;) {
    const head = await trail.head();
    if (head && compareIds(head.id, newest) >= 0) return true;
    if (performance.now() > until)
      throw new UserError(
        "Records that name this person aren't sealed yet",
        "start a gateway, which seals them, and run the command again",
      );
    await sleep(sealPauseMs);
  }
}

async function rewrite(trail: On, redaction: Redaction): Promise<void> {
  const { redis, names } = trail;
  const copyPage = defineScript(redis, "gatehouseAuditCopy", copyLua);
  const end = defineScript(redis, "gatehouseAuditRedact", endLua);
  const { rewriting, token, copy } = await beginRewriting(trail);
  const redacted: RedactedMarker["redacted"] = [];
  let last = "";
  for (;;) {
    const page = await trail.records({ after: last === "" ? undefined : last, most: pageSize });
    const to = page.at(-1)?.id;
    if (to !== undefined) {
      const left = await leftOf(trail, page, redaction.redact);
      redacted.push(
        ...left.map(({ seq, entry }) => ({ seq, id: entry.id, payload: payloadOf(entry) })),
      );
      const texts = Object.fromEntries(
        left.map(({ entry: { id, record, salt } }) => [id, { record, salt }]),
      );
      const args = [token, leaseMs, last, to, JSON.stringify(texts)];
      if ((await copyPage([names.records, rewriting, copy], args)) !== 1) throw busy();
      last = to;
      if (page.length === pageSize) continue;
    }
    const buckets = Map.groupBy(redacted, ({ seq }) => names.salts(seq));
    const fields = [...buckets.values()].map((some) => some.map(({ seq }) => String(seq)));
    const keys = [names.records, rewriting, copy, names.redacted, redaction.progress];
    const args = [
      token,
      last,
      JSON.stringify(markers(redaction, redacted)),
      JSON.stringify(fields),
    ];
    const reply = endReply.parse(await end([...keys, ...buckets.keys()], args));
    if (reply === "done") return;
    if (reply === "lost") throw busy();
  }
}

/** Returns the records of a page that name the person, without them and with new salts. */
async function leftOf(trail: On, page: readonly TrailEntry[], redact: Redaction["redact"]) {
  const named = page.filter(({ record }) => redact(record) !== record);
  const seals = new Map(
    (await trail.sealsOf(named.map(({ id }) => id))).map((sealed) => [sealed.seal.id, sealed]),
  );
  return named.flatMap((entry) => {
    const sealed = seals.get(entry.id);
    // It came while the others were copied, so the next pass takes it.
    if (!sealed) return [];
    // A record that was redacted before has no seal of its own text, and the trail was verified already.
    if (entry.salt === undefined && !isSealedBy(entry, sealed.seal, sealed.salt))
      throw new UserError(`Audit record ${entry.id} is not what was sealed`, "run audit verify");
    const salt = randomBytes(16).toString("hex");
    return [{ seq: sealed.seal.seq, entry: { ...entry, record: redact(entry.record), salt } }];
  });
}

function markers(
  { who, why, person }: Redaction,
  redacted: RedactedMarker["redacted"],
): readonly string[] {
  const count = Math.ceil(redacted.length / mostPerMarker);
  return Array.from({ length: count }, (_, index): string => {
    const part = redacted.slice(index * mostPerMarker, (index + 1) * mostPerMarker);
    const marker: RedactedMarker = { what: "audit-redacted", who, why, person, redacted: part };
    return JSON.stringify(marker);
  });
}
