import * as z from "zod";
import {
  type Part,
  type RefusedInteraction,
  type Sighting,
  parts,
} from "../../monitor/dependency-probe.ts";
import { defineRecord, objectOf } from "../../redis/define-record.ts";
import { createPending } from "../../redis/pending.ts";
import {
  type Keys,
  defineScript,
  type RedisClient,
  redisTimeLua,
  setBackMs,
} from "../../redis/redis.ts";

/** A time in which one part was unavailable (ms by Redis). */
interface Outage {
  /** `slack-1763600000000` */
  id: string;
  part: Part;
  since: number;
}

export const refusedRecord = defineRecord({
  name: "refused interaction",
  schema: objectOf<RefusedInteraction>({
    id: z.string(),
    channelId: z.string(),
    userId: z.string(),
    teamId: z.string(),
    words: z.string().exactOptional(),
    name: z.string().exactOptional(),
    mayRun: z.boolean().exactOptional(),
  }),
});

/** Kind of pending work: an outage that is over and needs its recap (`redis/pending.ts`). */
const recapKind = "recap";

export type Past = Outage & { until: number };

/**
 * Adds what one process saw of a part to what all processes saw, under Redis time, so that an
 * outage opens once and closes once. The hash `seen` holds when calls began to fail, when the last
 * one failed, the first answer after that, and the ID of the outage once failures have lasted long
 * enough without an answer in any process. The first answer ends the outage, after no process has
 * failed for the quiet time. The outage is then pending for its recap, as `<id> <since> <until>`.
 *
 * KEYS seen, pending, last outage
 * ARGV part, first failure, last failure, answer (ms ago, '' for none), long enough (ms),
 *      quiet for (ms), longest time between two failures that belong together (ms)
 * → ID of the outage that continues or ends with this; '' for none
 */
const sawScript = `${redisTimeLua}
local function at(ago) return tonumber(ago) and now - ago end
local function whole(n) return n and string.format('%.0f', n) or '' end
local first, last, answered = at(ARGV[2]), at(ARGV[3]), at(ARGV[4])
local enough, quiet, gap = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local got = redis.call('HMGET', KEYS[1], 'since', 'failed', 'answered', 'id')
local since, failed, ok = tonumber(got[1] or ''), tonumber(got[2] or ''), tonumber(got[3] or '')
local id = got[4] or ''
-- Redis's clock was set back. Failures that were no outage yet can't be compared with an answer now, so
-- they are forgotten; an outage goes on, and keeps how long it has lasted.
if failed and failed > now + ${setBackMs} then
  if id == '' then
    redis.call('DEL', KEYS[1])
    since, failed, ok = nil, nil, nil
  else
    local back = failed - now
    since, failed, ok = since - back, now, ok and ok - back
  end
end
if first and since and id == '' then
  -- Of a report with both, the answer may lie between what failed before and this failure
  local wasAnswered = answered and answered >= failed and answered < first
  if wasAnswered or first - failed > gap then since = nil end
end
if first and not since then since, failed = first, last end
if not since then return '' end
if first then since, failed = math.min(since, first), math.max(failed, last) end
if id == '' and failed - since >= enough then id = ARGV[1] .. '-' .. whole(since) end
if ok and ok < failed then ok = nil end
if not ok and answered and answered >= failed then ok = answered end
if ok and (id == '' or now - failed >= quiet) then
  redis.call('DEL', KEYS[1])
  if id ~= '' then
    local outage = id .. ' ' .. whole(since) .. ' ' .. whole(ok)
    redis.call('ZADD', KEYS[2], now + quiet, '${recapKind} ' .. outage)
    redis.call('SET', KEYS[3], outage)
  end
else
  redis.call('HSET', KEYS[1], 'since', whole(since), 'failed', whole(failed), 'answered', whole(ok), 'id', id)
end
return id
`;

const onList = ({ id, since, until }: Past) => `${id} ${since} ${until}`;

function fromList(text: string): Past {
  const [id = "", since, until] = text.split(" ");
  const part = parts.find((candidate) => id.startsWith(`${candidate}-`)) ?? "service";
  return { id, part, since: Number(since), until: Number(until) };
}

/** Retries come within seconds, so failures further apart are separate (ms). */
const gapMs = 60_000;
const keptMs = 24 * 3600_000;

/** Stores outages in Redis. Every call rejects while Redis is unavailable. */
export type OutageStore = ReturnType<typeof createOutageStore>;

export function createOutageStore(redis: RedisClient, key: Keys) {
  const runSaw = defineScript(redis, "gatehouseSawPart", sawScript);
  const last = key("outages", "last");
  const pending = createPending(redis, key, recapKind);
  const seenKey = (part: Part) => key("outages", "seen", part);
  const refusedKey = (id: string) => key("outages", "refused", id);

  return {
    /**
     * Adds what this process saw. Resolves with the ID of the part's outage, if one goes on or ends
     * with this.
     */
    async addSighting(
      { part, failedAgo, answeredAgo }: Sighting,
      outageMs: number,
    ): Promise<string | undefined> {
      const seen = [failedAgo?.first, failedAgo?.last, answeredAgo].map((ms) =>
        ms === undefined ? "" : Math.round(ms),
      );
      // An outage is over after a third of `outageMs` without a failure in any process.
      const timing = [outageMs, Math.round(outageMs / 3), gapMs];
      const id = await runSaw([seenKey(part), pending.list, last], [part, ...seen, ...timing]);
      return id === "" ? undefined : String(id);
    },
    async state(): Promise<{ open: Outage[]; last: Past | undefined }> {
      const open = await Promise.all(
        parts.map(async (part): Promise<Outage[]> => {
          const { id = "", since } = await redis.hgetall(seenKey(part));
          return id === "" ? [] : [{ id, part, since: Number(since) }];
        }),
      );
      const text = await redis.get(last);
      return { open: open.flat(), last: text === null ? undefined : fromList(text) };
    },

    /** Outages that are over and need their recap. Each is text that `parseOutage` reads. */
    pending,
    parseOutage: fromList,
    lookLater: (outage: Past, inMs: number) => pending.later(onList(outage), inMs),
    async forget(outage: Past): Promise<void> {
      await redis
        .multi()
        .zrem(pending.list, pending.memberOf(onList(outage)))
        .del(refusedKey(outage.id))
        .exec();
    },
    /** Stores interactions that a process had to refuse during this outage, each once. */
    async keepRefused(id: string, refused: readonly RefusedInteraction[]): Promise<void> {
      const byId = new Map(
        refused.map((interaction) => [interaction.id, refusedRecord.write(interaction)]),
      );
      await redis.multi().hset(refusedKey(id), byId).pexpire(refusedKey(id), keptMs).exec();
    },
    async refused(id: string): Promise<RefusedInteraction[]> {
      return refusedRecord.parseAll(await redis.hgetall(refusedKey(id)), refusedKey(id));
    },
  };
}
