import { randomBytes } from "node:crypto";
import { z } from "zod";
import { UserError } from "../errors.ts";
import { defineScript, redisTimeLua } from "../redis/redis.ts";
import type { ErasedMarker, RedactedMarker } from "./markers.ts";
import type { Seal, TrailEntry } from "./seal.ts";
import type { Trail } from "./trail.ts";
import { recordPages } from "./walk.ts";

const leaseMs = 30_000;
const pageSize = 500;

/**
 * Copies a page of records into a new stream. Some are left out, and others replaced by what is
 * left of them.
 *
 * KEYS records, rewriting, copy
 * ARGV token, lease (ms), last ID copied or '', last ID of the page, by ID: what is left with its
 * salt, or false
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
  elseif left[id] == nil then
    redis.call('XADD', KEYS[3], id, unpack(fields))
  end
end
redis.call('PEXPIRE', KEYS[3], ARGV[2])
return 1
`;

/**
 * Puts the copy in the place of the stream, unless there are newer records. In the same step it
 * adds the records that say what was done, removes the salts of the former texts, and counts the
 * redacted records.
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
  local vouched = {}
  for _, left in ipairs(cjson.decode(text).redacted or {}) do
    vouched[#vouched + 1] = string.format('%.0f', left.seq)
    vouched[#vouched + 1] = id
  end
  if #vouched > 0 then
    redis.call('HSET', KEYS[4], unpack(vouched))
    redis.call('HINCRBY', KEYS[5], 'records', #vouched / 2)
  end
end
for bucket, fields in ipairs(cjson.decode(ARGV[4])) do redis.call('HDEL', KEYS[5 + bucket], unpack(fields)) end
redis.call('PERSIST', KEYS[3])
redis.call('RENAME', KEYS[3], KEYS[1])
redis.call('DEL', KEYS[2])
return 'done'
`;

const endReply = z.enum(["done", "more", "lost"]);

type NumberAndId = Pick<Seal, "seq" | "id">;

/** A sealed record of which only `left`, or nothing, stays. `named` stands in the record about it. */
export interface Replacement<Named extends NumberAndId> {
  named: Named;
  left?: Required<Pick<TrailEntry, "record" | "salt">>;
}

interface Rewriting<Named extends NumberAndId> {
  /** Returns a replacement for each of these records that changes. */
  replace(
    page: readonly TrailEntry[],
  ): Promise<readonly Replacement<Named>[]> | readonly Replacement<Named>[];
  /** Returns the records that say what was done. */
  markers(replaced: readonly Named[]): readonly (ErasedMarker | RedactedMarker)[];
}

const busy = () => new UserError("Someone else is erasing audit records", "try again in a minute");

/**
 * Rewrites the stream without the former texts of some records, because XDEL would leave the bytes
 * in memory and in dumps. It goes in pages, so that Redis isn't blocked, and the new stream takes
 * effect in one last step with the records about it, so either all of it happens or nothing.
 *
 * Only one process rewrites at a time; after one died, the others wait until its lease ends. Throws
 * a UserError while another process rewrites.
 */
export async function rewriteTrail<Named extends NumberAndId>(
  trail: Trail,
  { replace, markers }: Rewriting<Named>,
): Promise<void> {
  const { redis, key, names } = trail;
  const copyPage = defineScript(redis, "gatehouseAuditCopy", copyLua);
  const end = defineScript(redis, "gatehouseAuditRewrite", endLua);
  const rewriting = key("audit", "rewriting");
  const token = randomBytes(8).toString("hex");
  if ((await redis.set(rewriting, token, "PX", leaseMs, "NX")) === null) throw busy();
  const copy = key("audit", "copy", token);
  const replaced: Named[] = [];
  let last = "";
  for (;;) {
    for await (const page of recordPages(trail, last, pageSize)) {
      const to = page.at(-1)?.id ?? last;
      const some = await replace(page);
      const leftById = Object.fromEntries(some.map(({ named, left }) => [named.id, left ?? false]));
      const args = [token, leaseMs, last, to, JSON.stringify(leftById)];
      if ((await copyPage([names.records, rewriting, copy], args)) !== 1) throw busy();
      replaced.push(...some.map(({ named }) => named));
      last = to;
    }
    const buckets = Map.groupBy(replaced, ({ seq }) => names.salts(seq));
    const fields = [...buckets.values()].map((some) => some.map(({ seq }) => String(seq)));
    const markerTexts = markers(replaced).map((marker) => JSON.stringify(marker));
    const reply = endReply.parse(
      await end(
        [names.records, rewriting, copy, names.redacted, names.erasing, ...buckets.keys()],
        [token, last, JSON.stringify(markerTexts), JSON.stringify(fields)],
      ),
    );
    if (reply === "done") return;
    if (reply === "lost") throw busy();
  }
}
