import type { Outbox } from "./outbox.ts";
import { type Pending, wakeLua } from "./pending.ts";
import { type Keys, type RedisClient, defineScript, redisNow, redisTimeLua } from "./redis.ts";

/**
 * Moves a record that several processes change: a hash with a state and a revision. The script
 * refuses when the record has changed since it was read.
 *
 * KEYS record, open records, audit, pending
 * ARGV id, revision as read ('' for a new record), state, final (0|1), how long a final record is
 * kept (ms), audit record ('' for none), the record's messages on the pending list, its next step
 * ('' for none), ...fields and their values
 * → {revision, now}, empty when the record has changed
 */
const moveScript = `${redisTimeLua}${wakeLua}
local was = redis.call('HGET', KEYS[1], 'revision') or ''
if was ~= ARGV[2] then return {} end
local revision = redis.call('HINCRBY', KEYS[1], 'revision', 1)
if was == '' then redis.call('HSET', KEYS[1], 'createdAt', now) end
if redis.call('HGET', KEYS[1], 'state') ~= ARGV[3] then redis.call('HSET', KEYS[1], 'changedAt', now) end
redis.call('HSET', KEYS[1], 'state', ARGV[3], 'final', ARGV[4], 'seenAt', now)
for i = 9, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
if ARGV[6] ~= '' then redis.call('XADD', KEYS[3], '*', 'at', now, 'record', ARGV[6]) end
wake(KEYS[4], ARGV[7])
if ARGV[8] ~= '' then
  if ARGV[4] == '1' then redis.call('ZREM', KEYS[4], ARGV[8]) else wake(KEYS[4], ARGV[8]) end
end
if ARGV[4] == '1' then
  redis.call('ZREM', KEYS[2], ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
else
  redis.call('PERSIST', KEYS[1])
  redis.call('ZADD', KEYS[2], 'NX', now, ARGV[1])
end
return {revision, now}
`;

export interface RecordMove {
  id: string;
  /** The revision as read; 0 for a new record. */
  revision: number;
  state: string;
  final: boolean;
  /** How long the record is kept once it is final (ms). */
  keptMs: number;
  /** The record for the audit trail. */
  audit?: object | undefined;
  fields: Readonly<Record<string, string>>;
}

/**
 * Records whose changes lead to messages in Slack: rollouts, alerts, proposals. `move` resolves
 * with the new revision and Redis time. It resolves with undefined, and has written nothing, when
 * the record has changed since it was read. `open` is the sorted set of records that aren't final.
 * With `steps`, a record that isn't final has a next step on the pending list.
 */
export function createRecords(
  redis: RedisClient,
  key: Keys,
  { open, outbox, steps }: { open: string; outbox: Outbox; steps?: Pending },
) {
  const run = defineScript(redis, "gatehouseMoveRecord", moveScript);
  const openIds = (): Promise<string[]> => redis.zrange(open, 0, "-1");

  async function touch(id: string): Promise<void> {
    const at = await redisNow(redis);
    await redis
      .multi()
      .hincrby(outbox.hashOf(id), "revision", 1)
      .zadd(outbox.list, at, outbox.memberOf(id))
      .exec();
    outbox.wake(id);
  }

  return {
    openIds,
    /** The record's message must be rendered again, although the record itself hasn't changed. */
    touch,
    /**
     * Renders the messages of all open records again, after changes were frozen or allowed again.
     */
    async refresh(): Promise<void> {
      for (const id of await openIds()) await touch(id);
    },
    async move({ id, revision, state, final, keptMs, audit, fields }: RecordMove) {
      const keys = [outbox.hashOf(id), open, key("audit"), outbox.list];
      const [read, record] = [revision === 0 ? "" : revision, audit ? JSON.stringify(audit) : ""];
      const members = [outbox.memberOf(id), steps?.memberOf(id) ?? ""];
      const args = [id, read, state, final ? 1 : 0, keptMs, record, ...members];
      const moved = await run(keys, [...args, ...Object.entries(fields).flat()]);
      const [next, now] = moved as [number?, number?];
      if (next === undefined || now === undefined) return undefined;
      outbox.wake(id);
      if (!final) steps?.wake(id);
      return { revision: next, now };
    },
  };
}
