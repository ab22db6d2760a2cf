import { afterEach, describe, expect, it, vi } from "vitest";
import { startMessaging } from "../../support/start-delivery.ts";
import { sentence } from "../../../src/messages/card.ts";
import { md } from "../../../src/messages/markdown.ts";
import { waysRow } from "../../../src/messages/parts.ts";
import { createNotices } from "../../../src/core/deliver/notices.ts";
import { pendingList } from "../../../src/redis/pending.ts";
import type { RateLimiter } from "../../../src/core/deliver/rate-limiter.ts";
import { garbage } from "../../support/only-whole.ts";
import { until } from "../../support/until.ts";

const answeredForAll = () => ["review:sign"];
const notice = { id: "n-1", channelId: "C01OPS", message: sentence(md`All changes are frozen`) };

const sign = { label: "Sign", action: "review:sign", value: '{"request":"r-1"}' };
const asking = {
  id: "n-2",
  channelId: "C01OPS",
  message: sentence(
    md`Everything was frozen`,
    waysRow([{ ...sign, label: "Show", action: "request:show" }, sign]),
  ),
};

/** Starts processes that announce notices, on one Redis and one Slack. */
async function startAnnouncing() {
  const level = await startMessaging();
  return {
    ...level,
    start(change?: (usual: RateLimiter) => RateLimiter) {
      const { announce, answer, owed, source } = createNotices({ ...level, answeredForAll });
      const { started, close } = level.deliver([source], change);
      return { announce, answer, owed, started, close };
    },
    said: () =>
      level.slack
        .person("vera")
        .seesChannel("ops")
        .messages.filter(({ text }) => /frozen/.test(text)),
    empty: () => level.empty("notice"),
  };
}

afterEach(() => {
  vi.useRealTimers();
});

describe("a notice", () => {
  it("is said once, though one process slept between reading it and posting it", async () => {
    await using here = await startAnnouncing();
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
    // The notice is made due again, so that the other process reads it, too.
    await here.redis.zadd(here.key("pending"), 0, `notice ${notice.id}`);
    await here.empty();
    expect(here.said()).toHaveLength(1);
    awake.resolve();
    await sleeper.close();
    await here.empty();
    expect(here.said()).toHaveLength(1);
  });

  it("comes again when Slack said so, not when a clock that is an hour ahead says so", async () => {
    await using here = await startAnnouncing();
    here.slack.weather.add({
      method: "chat.postMessage",
      kind: "rate-limited",
      retryAfter: 1,
      times: 1,
    });
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 3_600_000 });
    await here.start().announce(notice);
    await here.slack.until(() => here.slack.calls("chat.postMessage").length === 2);
    await here.empty();
    expect(here.said()).toHaveLength(1);
  });

  it("leaves a post alone that another one may just be making, whatever the clocks say", async () => {
    await using here = await startAnnouncing();
    const [seconds] = await here.redis.time();
    const asIf = here.start();
    await here.redis.hset(here.key("notice", notice.id), {
      notice: JSON.stringify(notice),
      at: `${Number(seconds)}000`,
      "said:notice": `posting ${Number(seconds)}000`,
    });
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 3_600_000 });
    await here.redis.zadd(here.key("pending"), 0, `notice ${notice.id}`);
    const due = async () =>
      Number(await here.redis.zscore(here.key("pending"), `notice ${notice.id}`));
    const soon = Number(seconds) * 1000;
    await until(due).toBeGreaterThan(soon);
    // It is put off only until the other call must have ended.
    await until(due).toBeLessThan(soon + 600_000);
    await asIf.close();
    expect(here.slack.calls("conversations.history")).toHaveLength(0);
    expect(here.said()).toHaveLength(0);
  });

  it("shows what answered a button of it in its place, once, whoever else may have it in hand", async () => {
    await using here = await startAnnouncing();
    const { announce, answer } = here.start();
    here.start();
    await announce(notice);
    await announce(asking);
    await announce({ ...asking, id: "n-gone", channelId: "C02STATUS" });
    await here.empty();
    await here.redis.del(here.key("notice", "n-gone"));
    const words = md`✅ Signed by amir: “${"<!here> it was *right*"}”`;
    await Promise.all([1, 2].map(() => answer(sign, words)));
    await here.empty();
    const [frozen, signed] = here.said().toSorted((a, b) => a.blocks.length - b.blocks.length);
    expect(JSON.stringify(frozen)).not.toContain("Signed");
    expect(signed?.blocks.map(({ type }) => type)).toEqual(["section", "section", "actions"]);
    expect(JSON.stringify(signed?.blocks)).toContain(
      "✅ Signed by amir: “&lt;!here&gt; it was ∗right∗”",
    );
    expect(JSON.stringify(signed?.blocks)).toContain("request:show");
    expect(JSON.stringify(signed?.blocks)).not.toContain("review:sign");
    expect(here.slack.calls("chat.update").length).toBeLessThanOrEqual(2);
    expect(await here.redis.exists(here.key("notice", "n-gone"))).toBe(0);
  });

  it("is posted as it was answered before", async () => {
    await using here = await startAnnouncing();
    const lazy = createNotices({ ...here, answeredForAll });
    await lazy.announce(asking);
    await lazy.answer(sign, md`✅ Signed by amir`);
    here.start();
    await here.empty();
    expect(JSON.stringify(here.said())).toContain("✅ Signed by amir");
    expect(JSON.stringify(here.said())).not.toContain("review:sign");
  });

  it("is kept with its ts in one step when it was posted before it was announced", async () => {
    await using here = await startAnnouncing();
    const { announce } = createNotices(here);
    // A write next to the script fails here, as in a process that dies between the two.
    const write = vi.spyOn(here.redis, "hset").mockRejectedValue(new Error("it has died"));
    expect(await announce(asking, { ts: "1763600000.000100" })).toBe(true);
    write.mockRestore();
    expect(await here.redis.hget(here.key("notice", "n-2"), "said:notice")).toBe(
      "1763600000.000100",
    );
    expect(await here.redis.pttl(here.key("notice", "n-2"))).toBeGreaterThan(0);
    here.start();
    await here.empty();
    expect(here.said()).toEqual([]);
  });

  it("is left to a process that can read it, and hides no other", async () => {
    await using here = await startAnnouncing();
    const { announce, answer } = createNotices({ ...here, answeredForAll });
    for (const [n, text] of garbage.entries()) {
      await announce({ ...asking, id: `n-broken-${n}` });
      await here.redis.hset(here.key("notice", `n-broken-${n}`), "notice", text);
    }
    await announce(asking);
    await answer(sign, md`✅ Signed by amir`);
    here.start();
    await until(here.said).toHaveLength(1);
    await until(() => here.redis.zcard(pendingList(here.key))).toBe(garbage.length);
  });

  it("is said when it is due, by whatever process lives, or as soon as it is hastened", async () => {
    await using here = await startAnnouncing();
    // The process that announced it has died since.
    const { announce, owed } = createNotices(here);
    await announce(notice, { inMs: 1_500 });
    await announce({ ...notice, id: "n-urgent" }, { inMs: 3_600_000 });
    here.start();
    await owed.hasten("n-urgent");
    await until(here.said).toHaveLength(1);
    await until(here.said).toHaveLength(2);
    await here.empty();
  });

  it("is never said once it is withdrawn before it is due, and a later withdrawal changes nothing", async () => {
    await using here = await startAnnouncing();
    const { announce, owed } = here.start();
    await owed.withdraw(notice.id);
    await announce(notice);
    await here.empty();
    await owed.withdraw(notice.id);
    expect(await owed.isWithdrawn(notice.id)).toBe(false);
    await announce({ ...notice, id: "n-owed" }, { inMs: 3_600_000 });
    await owed.withdraw("n-owed");
    await owed.hasten("n-owed");
    await here.empty();
    expect(await owed.isWithdrawn("n-owed")).toBe(true);
    expect(here.said()).toHaveLength(1);
  });

  it("is edited again where Slack's answer to the edit was lost", async () => {
    await using here = await startAnnouncing();
    const { announce, answer } = here.start();
    await announce(asking);
    await here.empty();
    here.slack.weather.add({ method: "chat.update", kind: "lost-after", times: 1 });
    await answer(sign, md`✅ Signed by amir`);
    await here.empty();
    expect(here.slack.calls("chat.update")).toHaveLength(2);
    expect(here.said()).toHaveLength(1);
    expect(JSON.stringify(here.said())).toContain("✅ Signed by amir");
  });
});
