import { describe, expect, it } from "vitest";
import { renderFeed } from "../../../src/features/subscriptions/render-feed.ts";
import { startMessaging } from "../../support/start-delivery.ts";
import type { RateLimiter } from "../../../src/core/deliver/rate-limiter.ts";
import { createFeeds } from "../../../src/features/subscriptions/feeds.ts";
import { wordsOf } from "../../stories/words.ts";
import { until } from "../../support/until.ts";

/** Starts processes on one Redis and one Slack. */
async function feeding() {
  const level = await startMessaging();
  let takes = true;
  let refused = 0;
  return {
    ...level,
    /** Starts a process; with `false` it doesn't deliver. */
    start(delivers = true) {
      const feeds = createFeeds({ ...level, render: renderFeed });
      const limited = (usual: RateLimiter): RateLimiter => ({
        ...usual,
        async post(channelId, turn) {
          if (takes) return usual.post(channelId, turn);
          refused++;
          return { kind: "wait", waitMs: 20 };
        },
      });
      if (delivers) level.deliver([feeds.source], limited);
      return feeds;
    },
    /** Whether channels have room for a message. */
    setRoom: (hasRoom: boolean) => void (takes = hasRoom),
    /** How often a message had to wait for room. */
    waits: () => refused,
    said: (channel = "ops") =>
      level.slack.person("vera").seesChannel(channel).messages.map(wordsOf),
    empty: () => level.empty("feed"),
  };
}

const line = (n: number) => ({ key: `trouble ${n}`, text: `*web-${n}* went to ERROR.` });

describe("a line that a channel is subscribed to", () => {
  it("is told once in each channel, however many processes bring it, and whenever", async () => {
    await using here = await feeding();
    const feeds = [here.start(), here.start(), here.start()];
    await Promise.all(feeds.map((one) => one.post("C01OPS", [line(1)])));
    await here.empty();
    await feeds[0]?.post("C01OPS", [line(1)]);
    await feeds[1]?.post("C02STATUS", [line(1)]);
    await here.empty();
    expect(here.said()).toHaveLength(1);
    expect(here.said()[0]).toContain("web-1 went to ERROR.");
    expect(here.said("status")).toHaveLength(1);
  });

  it("joins lines that wait for the same channel, and no posted message", async () => {
    await using here = await feeding();
    const feeds = here.start();
    await feeds.post("C01OPS", [line(0)]);
    await here.empty();
    here.setRoom(false);
    await feeds.post("C01OPS", [line(1)]);
    await until(here.waits).toBeGreaterThan(0);
    const more = Array.from({ length: 39 }, (_, n) => [line(n + 2), line(n + 1)]);
    await Promise.all(more.map((lines) => feeds.post("C01OPS", lines)));
    here.setRoom(true);
    await here.empty();
    const told = here.said().map((words) => (/^(\d+) events/.exec(words) ?? ["", "1"])[1]);
    expect(told).toEqual(["1", "40"]);
  });

  it("is told once when a process dies between the post and recording it", async () => {
    await using here = await feeding();
    const quiet = here.start(false);
    await quiet.post("C01OPS", [line(1)]);
    // Slack takes the message but the answer is lost, as if the process had died there.
    here.slack.weather.add({ method: "chat.postMessage", kind: "lost-after", times: 1 });
    here.start();
    here.start();
    // Another process brings the line again, with more lines, after the first message is closed.
    await until(() => here.said().length).toBe(1);
    await quiet.post("C01OPS", [line(1), line(2)]);
    await here.empty();
    const words = here.said();
    expect(words.filter((one) => one.includes("web-1 "))).toHaveLength(1);
    expect(words.filter((one) => one.includes("web-2 "))).toHaveLength(1);
  });
});
