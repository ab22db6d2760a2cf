import { randomBytes } from "node:crypto";
import { z } from "zod";
import { UserError } from "../errors.ts";
import { defineScript, redisTimeLua } from "../redis/redis.ts";
import {
  type ErasedMarker,
  isStreamId,
  readMarker,
  type Seal,
  createTrail,
  type Trail,
} from "./trail.ts";

export const leaseMs = 30_000;
const pageSize = 500;

/**
 * Copies the next records into a new stream, without those to be erased. With the last page it also
 * does the rest in the same step: it adds a record about the erasure, erases the salts, and renames
 * the copy over the old stream.
 *
 * KEYS records, rewriting, copy, ...salts of each record to be erased
 * ARGV token, last ID copied or '', the most records, lease (ms), the record about the erasure
 * → {'more', last ID} | {'done'} | {'lost'} (another process rewrites)
 */
const rewriteLua = `${redisTimeLua}
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return {'lost'} end
redis.call('PEXPIRE', KEYS[2], ARGV[4])
local erased = cjson.decode(ARGV[5]).erased
local isErased = {}
for _, one in ipairs(erased) do isErased[one.id] = true end
local from = ARGV[2] == '' and '-' or '(' .. ARGV[2]
local page = redis.call('XRANGE', KEYS[1], from, '+', 'COUNT', ARGV[3])
local last = ARGV[2]
for _, entry in ipairs(page) do
  if not isErased[entry[1]] then redis.call('XADD', KEYS[3], entry[1], unpack(entry[2])) end
  last = entry[1]
end
redis.call('PEXPIRE', KEYS[3], ARGV[4])
if #page == tonumber(ARGV[3]) then return {'more', last} end
local id = redis.call('XADD', KEYS[1], '*', 'at', now, 'record', ARGV[5])
redis.call('XADD', KEYS[3], id, 'at', now, 'record', ARGV[5])
redis.call('PERSIST', KEYS[3])
for i, one in ipairs(erased) do redis.call('HDEL', KEYS[3 + i], string.format('%d', one.seq)) end
redis.call('RENAME', KEYS[3], KEYS[1])
redis.call('DEL', KEYS[2])
return {'done'}
`;

const rewriteReply = z.array(z.string());

/**
 * Permanently erases the contents of these records. Their seals stay, so the chain still verifies,
 * and a new record says who did it and why. XDEL would leave the bytes in memory and in dumps, so
 * the stream is rewritten without them.
 *
 * Throws a UserError when a record isn't sealed yet, isn't what was sealed, or itself explains an
 * erasure or a loss, and when someone else is erasing.
 */
export async function eraseRecords({
  redis,
  key,
  ids,
  who,
  why,
}: Pick<Trail, "redis" | "key"> & { ids: readonly string[]; who: string; why: string }) {
  const trail = createTrail(redis, key);
  const seals = await erasable(trail, ids);
  if (seals.length > 0) {
    const erased = seals.map(({ seq, id }) => ({ seq, id }));
    await rewrite(trail, { what: "audit-erased", who, why, erased });
  }
  return { erased: seals.length };
}

export const busy = () =>
  new UserError("Someone else is erasing audit records", "try again in a minute");

/** The seals of the records that still exist. Throws for a record that must not be erased. */
async function erasable(trail: Trail, ids: readonly string[]): Promise<Seal[]> {
  const seals: Seal[] = [];
  for (const id of new Set(ids)) {
    if (!isStreamId(id)) throw new UserError(`${id} is not the ID of an audit record`);
    const seal = await trail.sealOf(id);
    if (!seal) {
      throw new UserError(`Audit record ${id} is not sealed`, "check the ID, or wait a second");
    }
    const stored = await trail.find(id);
    if (!stored) continue;
    if (stored.is !== "sealed") {
      throw new UserError(`Audit record ${id} is not what was sealed`, "run audit verify");
    }
    if (readMarker(stored.record)) {
      throw new UserError(`Audit record ${id} says what happened to the trail, so it must stay`);
    }
    seals.push(seal);
  }
  return seals;
}

/**
 * Takes the turn to rewrite the stream, for `leaseMs`. Throws a UserError while another process has
 * it.
 */
export async function beginRewriting({ redis, key }: Pick<Trail, "redis" | "key">) {
  const rewriting = key("audit", "rewriting");
  const token = randomBytes(8).toString("hex");
  if ((await redis.set(rewriting, token, "PX", leaseMs, "NX")) === null) throw busy();
  return { rewriting, token, copy: key("audit", "copy", token) };
}

/**
 * Rewrites in pages, so that Redis isn't blocked. Only one process rewrites at a time; after one
 * died, the others wait until its lease ends (`leaseMs`).
 */
async function rewrite(trail: Trail, marker: ErasedMarker): Promise<void> {
  const run = defineScript(trail.redis, "gatehouseAuditRewrite", rewriteLua);
  const { rewriting, token, copy } = await beginRewriting(trail);
  const salts = marker.erased.map(({ seq }) => trail.names.salts(seq));
  const keys = [trail.names.records, rewriting, copy, ...salts];
  for (let last = ""; ;) {
    const args = [token, last, pageSize, leaseMs, JSON.stringify(marker)];
    const [state, reached = ""] = rewriteReply.parse(await run(keys, args));
    if (state === "done") return;
    if (state !== "more") throw busy();
    last = reached;
  }
}
