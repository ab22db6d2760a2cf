import { createPending } from "./pending.ts";
import { type Fields, type Keys, type RedisClient, defineMark } from "./redis.ts";

/**
 * Messages owed to Slack, of one kind: IDs on the pending list, and for each a hash that also says what Slack shows of it. Every
 * script that changes a hash puts its ID on the list.
 */
export type Outbox = ReturnType<typeof createOutbox>;

export function createOutbox(
  redis: RedisClient,
  key: Keys,
  kind: string,
  hashOf: (id: string) => string,
) {
  const pending = createPending(redis, key, kind);
  const runMark = defineMark(redis);
  return {
    ...pending,
    hashOf,
    get: (id: string): Promise<Fields> => redis.hgetall(hashOf(id)),
    /** Off the list (0), or due in so long (ms), unless it was asked for, or moved on from this revision, since it was taken. */
    settle: (id: string, mark: string, revision: number | string, inMs: number): Promise<void> =>
      pending.release(id, mark, inMs || undefined, { hash: hashOf(id), revision }),
    /** Compare-and-set of one field ("" for none). */
    mark: async (id: string, field: string, before: string, value: string): Promise<boolean> =>
      (await runMark([hashOf(id)], [field, before, value])) === 1,
    async remember(id: string, fields: Record<string, string>): Promise<void> {
      await redis.hset(hashOf(id), fields);
    },
  };
}
