import { afterEach, describe, expect, it, vi } from "vitest";
import { silentLog } from "../../../src/log/log.ts";
import { sentence, md } from "../../../src/messages/message.ts";
import { startSandboxSlack } from "../../../sandbox/slack/sandbox-slack.ts";
import { type Announce, createNotices, startDelivery } from "../../../src/slack/deliver/deliver.ts";
import { createRateLimiter, type RateLimiter } from "../../../src/slack/deliver/rate-limiter.ts";
import { redisNow } from "../../../src/redis/redis.ts";
import { createWeb } from "../../../src/slack/web.ts";
import { testRedis } from "../../support/with-redis.ts";

const fast = {
  posts: { interval: 1, burst: 100, reserve: 0 },
  edits: { interval: 1, burst: 100, reserve: 0 },
};
const notice = { id: "n-1", channelId: "C01OPS", message: sentence(md`All changes are frozen`) };

interface Announcer {
  announce: Announce;
  close(): Promise<void>;
}

/** Announcers on one Redis and one Slack, each a process of its own as far as they know. */
async function announcing() {
  const slack = await startSandboxSlack({ rateLimits: "off" });
  const { redis, key, [Symbol.asyncDispose]: disconnect } = await testRedis();
  const log = silentLog();
  const started: Announcer[] = [];
  return {
    slack,
    redis,
    key,
    start(rateLimiter: (usual: RateLimiter) => RateLimiter = (usual) => usual): Announcer {
      const web = createWeb({ token: slack.app.botToken, apiUrl: slack.apiUrl, log });
      const usual = createRateLimiter(redis, key, fast);
      const { announce, source } = createNotices({ redis, key });
      const delivery = startDelivery([source], {
        refusal: async () => undefined,
        us: () => ({ botId: "B0GATEHOUSE", botUserId: "U0GATEHOUSE" }),
        web,
        rateLimiter: rateLimiter(usual),
        log,
        now: () => redisNow(redis),
        everyMs: 10,
      });
      const one = { announce, close: () => delivery.close(5000) };
      started.push(one);
      return one;
    },
    said: () =>
      slack
        .person("vera")
        .seesChannel("ops")
        .messages.filter(({ text }) => /frozen/.test(text)),
    async empty(): Promise<void> {
      await expect.poll(() => redis.zcard(key("notices")), { timeout: 5000 }).toBe(0);
    },
    async [Symbol.asyncDispose]() {
      for (const one of started) await one.close();
      await disconnect();
      await slack.close();
    },
  };
}

afterEach(() => {
  vi.useRealTimers();
});

describe("a notice", () => {
  it("is said once, though one process slept between reading it and posting it", async () => {
    await using here = await announcing();
    const awake = Promise.withResolvers<void>();
    const asleep = Promise.withResolvers<void>();
    const sleeper = here.start((rateLimiter) => ({
      ...rateLimiter,
      async post(channelId, turn) {
        asleep.resolve();
        await awake.promise;
        return rateLimiter.post(channelId, turn);
      },
    }));
    await sleeper.announce(notice);
    await asleep.promise;
    here.start();
    // Out of sight for half a minute: as if that had passed
    await here.redis.zadd(here.key("notices"), 0, notice.id);
    await here.empty();
    expect(here.said()).toHaveLength(1);
    awake.resolve();
    await sleeper.close();
    await here.empty();
    expect(here.said()).toHaveLength(1);
  });

  it("comes again when Slack said so, not when a clock that is an hour ahead says so", async () => {
    await using here = await announcing();
    here.slack.weather.add({
      method: "chat.postMessage",
      kind: "rate-limited",
      retryAfter: 1,
      times: 1,
    });
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 3_600_000 });
    await here.start().announce(notice);
    await here.slack.until(() => here.slack.calls("chat.postMessage").length === 2, 5000);
    await here.empty();
    expect(here.said()).toHaveLength(1);
  });

  it("leaves a post alone that another one may just be making, whatever the clocks say", async () => {
    await using here = await announcing();
    const [seconds] = await here.redis.time();
    const asIf = here.start();
    await here.redis.hset(here.key("notice", notice.id), {
      notice: JSON.stringify(notice),
      at: `${Number(seconds)}000`,
      "said:notice": `posting ${Number(seconds)}000`,
    });
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 3_600_000 });
    await here.redis.zadd(here.key("notices"), 0, notice.id);
    const due = async () => Number(await here.redis.zscore(here.key("notices"), notice.id));
    const soon = Number(seconds) * 1000;
    await expect.poll(due).toBeGreaterThan(soon);
    // Taken out of sight for 30 s, then put down to when that other call must have ended
    await expect.poll(due).toBeLessThan(soon + 15_000);
    await asIf.close();
    expect(here.slack.calls("conversations.history")).toHaveLength(0);
    expect(here.said()).toHaveLength(0);
  });
});
