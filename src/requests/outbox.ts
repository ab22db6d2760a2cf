import { defineScript, type Keys, type RedisClient } from "../redis.ts";
import * as scripts from "./scripts.ts";

/** Which requests Slack is behind on, and what it was told. Moves put them in, in the same script. */
export function createOutbox(redis: RedisClient, key: Keys) {
  const runTakeDue = defineScript(redis, "gatehouseTakeDue", scripts.takeDue);
  const runDelivered = defineScript(redis, "gatehouseDelivered", scripts.delivered);
  const runMark = defineScript(redis, "gatehouseMarkDelivered", scripts.markDelivered);
  const runDeliverLater = defineScript(redis, "gatehouseDeliverLater", scripts.deliverLater);
  return {
    /** Ids whose messages are due, out of sight of other deliverers for `hiddenMs`. */
    takeDue: async (most: number, hiddenMs: number): Promise<string[]> =>
      (await runTakeDue([key("outbox")], [most, hiddenMs])) as string[],
    /** False when the request moved on meanwhile: then it is due again. */
    delivered: async (id: string, revision: number): Promise<boolean> =>
      (await runDelivered([key("outbox"), key("request", id)], [id, revision])) === 1,
    async deliverLater(id: string, inMs: number): Promise<void> {
      await runDeliverLater([key("outbox")], [id, Math.ceil(inMs)]);
    },
    outboxDepth: (): Promise<number> => redis.zcard(key("outbox")),
    /** Which of these Slack has not been told everything of. */
    async undelivered(ids: readonly string[]): Promise<Set<string>> {
      if (ids.length === 0) return new Set();
      const due = await redis.zmscore(key("outbox"), ...ids);
      return new Set(ids.filter((_, index) => due[index] !== null));
    },
    /** Sets one field unless it is another by now than the one that was read ("" for none); false then. */
    markDelivered: async (
      id: string,
      field: string,
      before: string,
      mark: string,
    ): Promise<boolean> => (await runMark([key("request", id)], [field, before, mark])) === 1,
    async setDelivered(id: string, fields: Record<string, string>): Promise<void> {
      await redis.hset(key("request", id), fields);
    },
  };
}
