import { type Message } from "../messages/blocks.ts";
import { sentence, card } from "../messages/card.ts";
import { hintOf, md, plain } from "../messages/markdown.ts";
import type { Log } from "../log/log.ts";
import type { RedisCheck } from "../redis/check.ts";

/**
 * Returns a task that looks whether Redis still keeps its data, which each start requires. Whoever
 * sets Redis to evict, or to keep nothing, may not know of Gatehouse, so the audit channel is told,
 * and told again once it is over: each at most once an hour, by whichever worker sees it.
 */
export function createStorageWatch(on: {
  redisCheckNow(): Promise<RedisCheck>;
  announceIn(where: "audit", id: string, message: Message): Promise<void>;
  /** The time by Redis's clock (ms). */
  now(): Promise<number>;
  log: Log;
}): () => Promise<void> {
  let problem: string | undefined;
  return async () => {
    const check = await on.redisCheckNow();
    const problemNow = check.kind === "volatile" && !check.allowed ? check.sentence : undefined;
    if (problemNow === problem) return;
    const hour = Math.floor((await on.now()) / 3_600_000);
    if (problemNow === undefined) {
      on.log.info("redis.kept-again", {});
      await on.announceIn("audit", `redis-kept-${hour}`, keptNews());
    } else {
      on.log.error("redis.volatile", { why: problemNow });
      await on.announceIn("audit", `redis-volatile-${hour}`, volatileNews(problemNow));
    }
    problem = problemNow;
  };
}

export const keptNews = () =>
  sentence(md`✅ *Redis keeps everything again.* Changes are sent again.`);

export function volatileNews(why: string): Message {
  const title = md`⚠️ *Redis may forget what was sent, so no change is sent.* Requests wait until it is fixed.`;
  return card({ title, lines: [hintOf(plain(why, 400))] });
}
