import type { Job, Queue } from "bullmq";
import { defineScript, type RedisClient } from "../redis.ts";

/** KEYS lock   ARGV the token that it was seen to hold → 1 when it is gone now, 0 when somebody else holds it */
const unlock = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
`;

/** More than all workers hold at once is looked at in the next round. */
const most = 500;

/**
 * Rings anew for what a worker had in hand whose heart stopped. The queue finds out by itself, but only when its locks have
 * run out, and they are long, because steps may be. Should that worker live after all (frozen, cut off), it finds its job
 * gone when it comes back, and the journal keeps the two apart.
 */
export function createRescue(
  redis: RedisClient,
  isAlive: (queueWorkerId: string) => Promise<boolean>,
): (queue: Queue) => Promise<number> {
  const runUnlock = defineScript(redis, "gatehouseUnlock", unlock);

  async function rescueOne(queue: Queue, job: Job): Promise<boolean> {
    const { id, name, data } = job;
    if (id === undefined) return false;
    const lock = `${queue.toKey(id)}:lock`;
    const token = await redis.get(lock);
    // BullMQ's tokens are the id of the worker and a number
    if (token === null || (await isAlive(token.slice(0, token.lastIndexOf(":"))))) return false;
    if ((await runUnlock([lock], [token])) !== 1) return false;
    await job.remove();
    await queue.add(name, data, { jobId: id });
    return true;
  }

  return async (queue) => {
    let rescued = 0;
    for (const job of await queue.getJobs(["active"], 0, most - 1))
      if (job && (await rescueOne(queue, job))) rescued += 1;
    return rescued;
  };
}
