import { defineScript, type Keys, type RedisClient } from "../redis.ts";

/** What whoever asks may do with a slot now. `exhausted`: begun too often, each time without an end. */
export type Begun =
  | { is: "yours"; starts: number }
  | { is: "busy" }
  | { is: "over" }
  | { is: "exhausted" };

/**
 * KEYS slot   ARGV owner, lease (ms), most starts, how long it is kept (ms)
 * → {'yours', starts} | {'busy'} | {'over'} | {'exhausted'}
 */
const beginScript = `
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
if redis.call('HGET', KEYS[1], 'ended') then return {'over'} end
if tonumber(redis.call('HGET', KEYS[1], 'until') or '0') > now then return {'busy'} end
if tonumber(redis.call('HGET', KEYS[1], 'starts') or '0') >= tonumber(ARGV[3]) then return {'exhausted'} end
local starts = redis.call('HINCRBY', KEYS[1], 'starts', 1)
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'until', now + ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return {'yours', starts}
`;

/** KEYS slot   ARGV owner → 1 when it was let go, so that the next look may begin it again */
const letGoScript = `
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
return redis.call('HDEL', KEYS[1], 'until')
`;

const keptMs = 7 * 24 * 3600_000;
const mostStarts = 3;

/**
 * Keeps a slot from being begun twice at once, or for ever: a digest whose making ends the process is begun three times,
 * by whatever process, and then given up. That it is posted once is not decided here but by its notice.
 */
export function createSlotRecords(redis: RedisClient, key: Keys, leaseMs: number) {
  const runBegin = defineScript(redis, "gatehouseBeginSlot", beginScript);
  const runLetGo = defineScript(redis, "gatehouseLetGoSlot", letGoScript);
  const named = (slotId: string) => key("digest-slot", slotId);
  return {
    async begin(slotId: string, owner: string): Promise<Begun> {
      const answer = (await runBegin([named(slotId)], [owner, leaseMs, mostStarts, keptMs])) as [
        Begun["is"],
        number?,
      ];
      const [is, starts = 0] = answer;
      return is === "yours" ? { is, starts } : { is };
    },
    async letGo(slotId: string, owner: string): Promise<void> {
      await runLetGo([named(slotId)], [owner]);
    },
    /** `how`: posted, or failed. */
    async end(slotId: string, how: "posted" | "failed"): Promise<void> {
      await redis.hset(named(slotId), "ended", how);
      await redis.pexpire(named(slotId), keptMs);
    },
    /** Until when the last digest of this channel told what had changed; milliseconds. */
    async lastTold(channel: string): Promise<number | undefined> {
      const at = await redis.hget(key("digest-told"), channel);
      return at === null ? undefined : Number(at);
    },
    async told(channel: string, at: number): Promise<void> {
      await redis.hset(key("digest-told"), channel, at);
    },
  };
}

export type SlotRecords = ReturnType<typeof createSlotRecords>;
