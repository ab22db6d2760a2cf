import { type PendingKind, createPending } from "./pending.ts";
import {
  type Fields,
  type Keys,
  type RedisClient,
  defineMark,
  defineScript,
  redisTimeLua,
} from "./redis.ts";

/** KEYS pending, hash   ARGV member, revision, due in (ms, 0 for never), else in (ms) → 1, or 0 when its hash has another revision */
const settle = `${redisTimeLua}
local same = (redis.call('HGET', KEYS[2], 'revision') or ARGV[2]) == ARGV[2]
if same and ARGV[3] == '0' then redis.call('ZREM', KEYS[1], ARGV[1])
else redis.call('ZADD', KEYS[1], math.ceil(now + (same and ARGV[3] or ARGV[4])), ARGV[1]) end
return same and 1 or 0
`;

/**
 * Messages owed to Slack, of one kind: IDs on the pending list, and for each a hash that also says what Slack shows of it. Every
 * script that changes a hash puts its ID on the list.
 */
export type Outbox = ReturnType<typeof createOutbox>;

export function createOutbox(
  redis: RedisClient,
  key: Keys,
  kind: PendingKind,
  hashOf: (id: string) => string,
) {
  const pending = createPending(redis, key, kind);
  const runSettle = defineScript(redis, "gatehouseSettle", settle);
  const runMark = defineMark(redis);
  return {
    ...pending,
    hashOf,
    get: (id: string): Promise<Fields> => redis.hgetall(hashOf(id)),
    /** Off the list (0), or due in `inMs`. False, and due in `elseInMs`, when its hash has another revision by now: read again. */
    settle: async (id: string, ...how: [revision: number, inMs: number, elseInMs: number]) =>
      (await runSettle([pending.list, hashOf(id)], [pending.memberOf(id), ...how])) === 1,
    /** Compare-and-set of one field ("" for none). */
    mark: async (id: string, field: string, before: string, value: string): Promise<boolean> =>
      (await runMark([hashOf(id)], [field, before, value])) === 1,
    async remember(id: string, fields: Record<string, string>): Promise<void> {
      await redis.hset(hashOf(id), fields);
    },
  };
}
