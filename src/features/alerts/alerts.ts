import type { Keys, RedisClient } from "../../redis/redis.ts";
import { createAlertStore } from "./alert-store.ts";
import { createLooks } from "./look-again.ts";
import { createIntake } from "./take-delivery.ts";

export {
  type AlertGroup,
  type ShownAlert,
  detailsOf,
  firingIn,
  isFiring,
  merge,
  unknownIn,
} from "./alert-group.ts";
export { type FiringAlert, type StoredAlert, parseAlert } from "./stored-alert.ts";
export type { Meaning } from "./take-delivery.ts";

export type Alerts = ReturnType<typeof createAlerts>;

/** Stores groups of alerts in Redis, as sources tell of them. */
export function createAlerts(redis: RedisClient, key: Keys) {
  const store = createAlertStore(redis, key);
  return { ...store, ...createLooks(store), take: createIntake(redis, key, store) };
}
