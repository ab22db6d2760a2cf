import { createOutbox } from "../redis/due-list.ts";
import { createRecords } from "../redis/record.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";

export type Alerts = ReturnType<typeof createAlerts>;

/** Groups of alerts as sources tell of them. */
export function createAlerts(redis: RedisClient, key: Keys) {
  const outbox = createOutbox(redis, key("alerts", "outbox"), (id) => key("alert", id));
  const records = createRecords(redis, key, key("alerts", "open"), outbox);
  return { outbox, openIds: records.openIds };
}
