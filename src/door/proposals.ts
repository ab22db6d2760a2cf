import { createOutbox } from "../redis/due-list.ts";
import { createRecords } from "../redis/record.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";

export type Proposals = ReturnType<typeof createProposals>;

/** Changes that programs propose, and people run. */
export function createProposals(redis: RedisClient, key: Keys) {
  const outbox = createOutbox(redis, key("proposals", "outbox"), (id) => key("proposal", id));
  const records = createRecords(redis, key, key("proposals", "open"), outbox);
  return { outbox, openIds: records.openIds };
}
