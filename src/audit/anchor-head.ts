import type { Log } from "../log/log.ts";
import type { Message } from "../messages/message.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";
import { createLeases } from "../redis/lease.ts";
import { type Anchor, openAnchors } from "./anchors.ts";
import { renderAnchor } from "./render.ts";
import { createTrail } from "./trail.ts";

/** Time to post before another process tries (ms). */
const postWithinMs = 10 * 60_000;
const rememberMs = 3 * 24 * 3600_000;

interface Where {
  redis: RedisClient;
  key: Keys;
  dataDir: string;
  log: Log;
}

/** Writes the chain's head to the log and to this process's disk. Undefined while nothing is sealed. */
export async function anchorHead({ redis, key, dataDir, log }: Where): Promise<Anchor | undefined> {
  const trail = createTrail(redis, key);
  const head = await trail.head();
  if (!head) return undefined;
  const anchor = { seq: head.seq, hash: head.hash, at: await trail.now() };
  openAnchors(dataDir, key.namespace).add(anchor);
  log.info("audit.head", { seq: anchor.seq, hash: anchor.hash });
  return anchor;
}

/**
 * Once a day (UTC, Redis time), in one process: anchors the head and posts it. When `post` fails, the next call tries
 * again. Resolves to whether this call posted.
 */
export async function anchorDaily(
  options: Where & { post: (message: Message, anchor: Anchor) => Promise<void> },
): Promise<boolean> {
  const { redis, key, post } = options;
  const today = new Date(await createTrail(redis, key).now()).toISOString().slice(0, 10);
  const leases = createLeases(redis);
  const claim = key("audit", "posted", today);
  if (!(await leases.take(claim, "posting", postWithinMs))) return false;
  try {
    const anchor = await anchorHead(options);
    if (anchor) await post(renderAnchor(anchor), anchor);
    else await leases.release(claim, "posting");
    if (anchor) await redis.set(claim, "posted", "PX", rememberMs);
    return anchor !== undefined;
  } catch (error) {
    await leases.release(claim, "posting");
    throw error;
  }
}
