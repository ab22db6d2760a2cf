import { describe, expect, it, vi } from "vitest";
import { silentLog } from "../../../src/log/log.ts";
import { connectRedis, createKeys } from "../../../src/redis/redis.ts";
import { createSharedAnswer } from "../../../src/slack/people/shared-answer.ts";
import type { WebAnswer } from "../../../src/slack/web-answer.ts";
import { privateRedis, testRedis } from "../../support/with-redis.ts";
import { until } from "../../support/until.ts";

type Redis = Awaited<ReturnType<typeof testRedis>>;

/** A process that shares its answers, and what it asked. */
function aProcess({ redis, key }: Pick<Redis, "redis" | "key">, secret = "xoxb-1") {
  const changes = key("changes");
  const shared = createSharedAnswer({ redis, key, name: "answers", changes, secret: () => secret });
  const asked: number[] = [];
  const get = (
    atMostMs: number,
    answer: () => WebAnswer | Promise<WebAnswer> = () => ({ ok: true, data: { from: secret } }),
    limitedMs = 60_000,
  ) =>
    shared.get({ id: "q", atMostMs, limitedMs }, async () => {
      asked.push(atMostMs);
      return answer();
    });
  return { get, asked };
}

const said = (who: string): WebAnswer => ({ ok: true, data: { who } });

describe("one answer for all processes", () => {
  it("is asked for once, however many need it at once", async () => {
    await using here = await testRedis();
    const processes = Array.from({ length: 5 }, () => aProcess(here));
    const slow = Promise.withResolvers<WebAnswer>();
    const all = processes.flatMap(({ get }) => [
      get(60_000, () => slow.promise),
      get(60_000, () => slow.promise),
    ]);
    await until(() => processes.flatMap(({ asked }) => asked).length).toBe(1);
    slow.resolve(said("first"));
    for (const { answer } of await Promise.all(all)) expect(answer).toEqual(said("first"));
    expect(processes.flatMap(({ asked }) => asked)).toHaveLength(1);
  });

  it("is as old as it is, in whichever process, and is asked for anew by whoever needs a younger one", async () => {
    await using here = await testRedis();
    const [one, other] = [aProcess(here), aProcess(here)];
    await one.get(60_000, () => said("old"));
    await until(async () => (await other.get(60_000)).ageMs).toBeGreaterThan(150);
    expect((await other.get(100, () => said("new"))).answer).toEqual(said("new"));
    expect((await one.get(60_000)).answer).toEqual(said("new"));
  });

  it("doesn't outlast a change, even when it was on its way", async () => {
    await using here = await testRedis();
    const [one, other] = [aProcess(here), aProcess(here)];
    await one.get(60_000, () => said("before"));
    await here.redis.incr(here.key("changes"));
    const slow = Promise.withResolvers<WebAnswer>();
    const asking = other.get(60_000, () => slow.promise);
    await until(() => other.asked.length).toBe(1);
    await here.redis.incr(here.key("changes"));
    slow.resolve(said("on its way"));
    await asking;
    expect((await one.get(60_000, () => said("after"))).answer).toEqual(said("after"));
  });

  it("counts from memory while Slack limits, a minute at most, and nobody asks meanwhile", async () => {
    await using here = await testRedis();
    const [one, other] = [aProcess(here), aProcess(here)];
    const limited = (): WebAnswer => ({ ok: false, kind: "limited", retryAfterMs: 50_000 });
    expect((await one.get(60_000, limited)).answer).toMatchObject({ ok: false, kind: "limited" });
    expect((await other.get(60_000)).answer).toMatchObject({ ok: false, kind: "limited" });
    expect(other.asked).toEqual([]);
    await here.redis.del(here.key("answers", "q", "asking"));
    await one.get(60_000, () => said("before"));
    expect((await other.get(-1, limited)).answer).toEqual(said("before"));
    expect((await one.get(-1)).answer).toEqual(said("before"));
    expect((await one.get(-1, limited, -1)).answer).toMatchObject({ kind: "limited" });
    expect(one.asked).toHaveLength(2);
  });

  it("is told to those who waited when it failed, and isn't remembered", async () => {
    await using here = await testRedis();
    const [one, other] = [aProcess(here), aProcess(here)];
    const refused: WebAnswer = { ok: false, kind: "refused", error: "missing_scope", detail: [] };
    const slow = Promise.withResolvers<WebAnswer>();
    const first = one.get(60_000, () => slow.promise);
    await until(() => one.asked.length).toBe(1);
    const second = other.get(60_000);
    slow.resolve(refused);
    expect([(await first).answer, (await second).answer]).toEqual([refused, refused]);
    expect(other.asked).toEqual([]);
    expect((await other.get(60_000, () => said("better"))).answer).toEqual(said("better"));
  });

  it("counts for nothing when it was written by hand, or by whoever has another bot token", async () => {
    await using here = await testRedis();
    const [one, other] = [aProcess(here), aProcess(here)];
    await one.get(60_000, () => said("Slack"));
    const kept = here.key("answers", "q");
    await here.redis.hset(kept, "text", JSON.stringify({ who: "an attacker" }));
    expect((await other.get(60_000, () => said("Slack again"))).answer).toEqual(
      said("Slack again"),
    );
    await aProcess(here, "xoxb-stolen").get(-1, () => said("another token"));
    expect((await other.get(60_000, () => said("Slack"))).answer).toEqual(said("Slack"));
    // A failure is no way in either
    const asking = here.key("answers", "q", "asking");
    await here.redis.del(kept);
    await here.redis.set(asking, "asking:someone:", "PX", 60_000);
    const sent = vi.spyOn(here.redis, "sendCommand");
    const looks = () => sent.mock.calls.filter(([{ args }]) => args.flat().includes(asking)).length;
    const waiting = other.get(60_000);
    await until(looks).toBeGreaterThan(1);
    sent.mockRestore();
    await here.redis.set(
      asking,
      `failed:someone:${JSON.stringify(said("an attacker"))}`,
      "PX",
      60_000,
    );
    expect((await waiting).answer.ok).toBe(false);
  });

  it("is asked for by each process itself while Redis is away", async () => {
    await using server = await privateRedis();
    const redis = await connectRedis(server.url, "commands", silentLog());
    try {
      const { get, asked } = aProcess({ redis, key: createKeys("away") });
      await server.kill();
      expect((await get(60_000, () => said("Slack"))).answer).toEqual(said("Slack"));
      expect(asked).toHaveLength(1);
    } finally {
      redis.disconnect();
    }
  });
});
