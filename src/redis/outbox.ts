import { type Due, createPending } from "./pending.ts";
import { type Fields, type Keys, type RedisClient, defineMark } from "./redis.ts";

/**
 * Messages of one kind that must be sent to Slack: IDs on the pending list, and for each ID a hash
 * that also records what Slack shows. Every script that changes such a hash puts its ID on the
 * list.
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
    /**
     * Takes the ID off the list, or makes it due again in `inMs` if that isn't 0. It stays due as
     * it is when it was woken again, or its hash left this revision, after `mark` was set.
     */
    settle: (
      id: string,
      mark: string,
      revision: number | string,
      inMs: number,
    ): Promise<Due | undefined> =>
      pending.release(id, mark, inMs || undefined, { hash: hashOf(id), revision }),
    /**
     * Sets one field if it still has the expected value; '' stands for no value. `others` are set
     * with it. Resolves with false when it has another value.
     */
    async mark(
      id: string,
      field: string,
      before: string,
      value: string,
      others: Readonly<Record<string, string>> = {},
    ): Promise<boolean> {
      const args = [field, before, value, ...Object.entries(others).flat()];
      return (await runMark([hashOf(id)], args)) === 1;
    },
    async remember(id: string, fields: Record<string, string>): Promise<void> {
      await redis.hset(hashOf(id), fields);
    },
  };
}
