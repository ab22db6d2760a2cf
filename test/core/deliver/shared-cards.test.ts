import { describe, expect, it } from "vitest";
import { commands } from "../../support/commands.ts";
import { startDelivery } from "../../support/start-delivery.ts";
import { md } from "../../../src/messages/markdown.ts";
import { silentLog } from "../../../src/log/log.ts";
import { boardOf } from "../../../src/redis/board.ts";
import { isChange } from "../../../src/registry/define.ts";
import { createJournal } from "../../../src/core/request/journal.ts";
import type { RequestIn, StoredRequest } from "../../../src/core/request/stored-request.ts";
import type { ToldResult } from "../../../src/core/deliver/after-result.ts";
import {
  type TurnAnswer,
  type Turn,
  createRateLimiter,
} from "../../../src/core/deliver/rate-limiter.ts";
import { requestSource } from "../../../src/core/deliver/requests.ts";
import { sharedCardSource } from "../../../src/core/deliver/shared-cards.ts";
import { textAt } from "../../../src/slack/json.ts";
import type { WebAnswer } from "../../../src/slack/web-answer.ts";
import type { Web } from "../../../src/slack/web.ts";
import {
  claimedBy,
  storeRequest,
  member,
  movedBy,
  policy,
  requestIn,
  restartOf,
  stageOf,
  vmTarget,
} from "../asking.ts";
import { testRedis } from "../../support/with-redis.ts";
import { until } from "../../support/until.ts";

interface Posted {
  ts: string;
  channel: string;
  thread: string;
  said: string;
  covers: string;
  tells: string;
  text: string;
  bot_id: string;
  metadata: unknown;
}

/**
 * Delivers to a Slack in which no card can be posted at once, so that every request joins a shared
 * card. After `start(true)`, cards can be posted.
 */
async function deliverToCrowdedSlack(
  over: {
    answer?(posted: Posted): WebAnswer | undefined | Promise<WebAnswer | undefined>;
    /** Takes the turn of a post by `take`. */
    turn?(turn: Turn, take: () => Promise<TurnAnswer>): Promise<TurnAnswer>;
  } = {},
) {
  const { redis, key, [Symbol.asyncDispose]: dispose } = await testRedis();
  const store = createJournal(redis, key);
  const posted: Posted[] = [];
  const edits: string[] = [];
  const web: Web = {
    async call(method, args = {}) {
      if (method === "chat.update") edits.push(textAt(args, "text"));
      if (method.startsWith("conversations.")) return { ok: true, data: { messages: posted } };
      if (method !== "chat.postMessage") return { ok: true, data: {} };
      const payload = (name: string) => textAt(args, "metadata", "event_payload", name);
      const one = {
        ts: `1763600000.${String(posted.length + 1).padStart(6, "0")}`,
        channel: textAt(args, "channel"),
        thread: textAt(args, "thread_ts"),
        said: payload("said"),
        covers: payload("covers"),
        tells: payload("tells"),
        text: textAt(args, "text"),
        blocks: args["blocks"],
        bot_id: "B0GATEHOUSE",
        metadata: args["metadata"],
      };
      const answer = await over.answer?.(one);
      if (answer === undefined || (!answer.ok && answer.kind === "lost")) posted.push(one);
      return answer ?? { ok: true, data: { ts: one.ts, channel: one.channel } };
    },
  };
  const told: string[] = [];
  const noted: string[] = [];
  const options = {
    store,
    commands: commands.filter(isChange),
    onTold(results: readonly ToldResult[], channelId: string) {
      told.push(...results.map(({ request }) => request.record.id));
      noted.push(...results.map(({ note }) => `${note?.failure?.mark} in ${channelId}`));
    },
    attestationNote: async ({ record }: StoredRequest) =>
      record.target.name === "failing"
        ? { line: md`🔴 changed`, but: "it fails", failure: { mark: "changed", isNew: true } }
        : undefined,
    factsAfter: async ({ record: { target } }: StoredRequest) =>
      target.name === "alarmed" ? [md`HighCpu still fires on ${target.name}.`] : [],
  };
  const unlimited = createRateLimiter(redis, key, {
    posts: { interval: 1, burst: 1000, reserve: 0 },
    edits: { interval: 1, burst: 1000, reserve: 0 },
  });
  const start = (isRoomy = false) =>
    startDelivery(
      [
        requestSource({
          ...options,
          log: silentLog(),
          web,
          config: { policy },
          namesOf: async () => undefined,
          hasWorker: async () => true,
          changesSince: async () => [],
          askingAbout: async () => [],
          recordResults: async () => undefined,
          tellElsewhere: async () => undefined,
          at: async () => undefined,
        }),
        // This is longer than any test, so an edit that only shows progress never comes.
        sharedCardSource({ ...options, editMs: 60_000 }),
      ],
      {
        web,
        rateLimiter: {
          ...unlimited,
          async post(channel, turn) {
            if (turn.isJoining && !isRoomy) return { kind: "wait", waitMs: 5000 };
            const take = () => unlimited.post(channel, turn);
            return over.turn ? over.turn(turn, take) : take();
          },
        },
        log: silentLog(),
        redis,
        key,
      },
    );
  const started: ReturnType<typeof start>[] = [];
  return {
    store,
    redis,
    key,
    posted,
    edits,
    told,
    noted,
    start: (isRoomy?: boolean) => void started.push(start(isRoomy)),
    async stop(): Promise<void> {
      for (const one of started.splice(0)) await one.close(2000);
    },
    async asks(vm: string, who = "U0OLIVIA"): Promise<RequestIn<"authorized">> {
      const { approval: _none, ...plain } = restartOf(vmTarget(vm), { person: member(who) });
      return storeRequest(store, plain);
    },
    async ends({ record }: RequestIn<"authorized">) {
      const now = requestIn(await store.get(record.id), "authorized");
      await store.move(now, { to: stageOf("cancelled", { why: "a test" }), why: "a test" });
    },
    said: () => posted.map(({ said, covers }) => (covers ? `${said} (${covers})` : said)),
    async [Symbol.asyncDispose]() {
      for (const one of started) await one.close(2000);
      await dispose();
    },
  };
}

describe.concurrent("a shared card", () => {
  it("shows requests that find no room, is edited, and tells each requester once, in its thread", async () => {
    await using at = await deliverToCrowdedSlack();
    const mine = [await at.asks("web-1"), await at.asks("web-2")];
    const hers = await at.asks("db-1", "U0ADA");
    at.start();
    await until(() => at.said()).toEqual(["card"]);
    expect(at.posted[0]?.text).toBe("3 requests: 3 waiting to start");
    for (const one of mine) await at.ends(one);
    await until(() => at.said()).toEqual(["card", "ended:U0OLIVIA:2"]);
    await at.ends(hers);
    await until(() => at.posted.length).toBe(3);
    expect(at.posted.slice(1).map(({ thread, text }) => [thread, text])).toEqual([
      [at.posted[0]?.ts, "❌ None of 2 is done."],
      [at.posted[0]?.ts, "❌ Restart of db-1 was canceled: a test."],
    ]);
    expect(at.posted[1]?.tells).toBe(mine.map(({ record }) => record.id).join(" "));
    await until(() => at.edits.at(-1)).toBe("3 requests: 3 canceled");
    expect(at.told).toEqual([...mine, hers].map(({ record }) => record.id));
    const [stored] = await at.store.getMany([hers.record.id]);
    expect(stored?.delivered.card).toEqual({ channelId: "C01OPS", ts: at.posted[0]?.ts });
  });

  it("tells several people in one reply what they wait for at the same time, but a single outcome in its own", async () => {
    await using at = await deliverToCrowdedSlack();
    const two = async (who: string) => [
      await at.asks(`web-${who}-1`, who),
      await at.asks(`web-${who}-2`, who),
    ];
    const all = [...(await two("U0OLIVIA")), ...(await two("U0AMIR"))];
    const single = await at.asks("failing", "U0ADA");
    at.start();
    await until(() => at.said()).toEqual(["card"]);
    await at.stop();
    for (const one of [...all, single]) await at.ends(one);
    at.start();
    await until(() => at.said().toSorted()).toEqual([
      "card",
      "ended:U0ADA:1",
      "ended:U0OLIVIA:2 (ended:U0AMIR:2)",
    ]);
    const both = at.posted.find(({ covers }) => covers !== "");
    expect(both?.text).toBe("olivia: ❌ None of 2 is done. amir: ❌ None of 2 is done.");
    expect(both?.tells).toBe(all.map(({ record }) => record.id).join(" "));
    await until(() => at.told.length).toBe(5);
    // What was told of each VM's attestation is reported with the place.
    expect(at.noted.filter((noted) => noted === "changed in C01OPS")).toHaveLength(1);
    await at.stop();
    expect(at.posted).toHaveLength(3);
  });

  it("says that an alert goes on, in the card with the results and in its thread", async () => {
    const goesOn = "HighCpu still fires on alarmed.";
    await using at = await deliverToCrowdedSlack();
    const early = [await at.asks("alarmed"), await at.asks("web-2")];
    at.start();
    await until(() => at.said()).toEqual(["card"]);
    for (const one of early) await at.ends(one);
    await until(() => at.said()).toContain("ended:U0OLIVIA:2");
    await at.stop();
    expect(JSON.stringify(at.posted.at(-1))).toContain(goesOn);

    await using late = await deliverToCrowdedSlack();
    for (const one of [await late.asks("alarmed"), await late.asks("web-2")]) await late.ends(one);
    late.start();
    await until(() => late.said()).toEqual(["card (ended:U0OLIVIA:2)"]);
    await late.stop();
    expect(JSON.stringify(late.posted)).toContain(goesOn);
  });

  it("is one message with the mentions when all have ended before it is posted", async () => {
    await using at = await deliverToCrowdedSlack();
    for (const one of [await at.asks("web-1"), await at.asks("web-2")]) await at.ends(one);
    at.start();
    await until(() => at.said()).toEqual(["card (ended:U0OLIVIA:2)"]);
    expect(at.posted[0]?.text).toBe("❌ None of 2 is done.");
    await until(() => at.told.length).toBe(2);
  });

  it("dissolves when it has one request, which gets a card of its own", async () => {
    await using at = await deliverToCrowdedSlack();
    const alone = await at.asks("web-1");
    at.start();
    await until(() => at.said()).toEqual(["card"]);
    expect(at.posted[0]?.text).toMatch(/^Restart web-1.*: Requested\./);
    await at.ends(alone);
    await until(() => at.said()).toEqual(["card", "result"]);
    await until(() => at.told).toEqual([alone.record.id]);
  });

  it("lets go who needs a person: an unknown outcome gets its own card, with its buttons", async () => {
    await using at = await deliverToCrowdedSlack();
    const [lost, fine] = [await at.asks("web-1"), await at.asks("web-2")];
    at.start();
    await until(() => at.said()).toEqual(["card"]);
    const claimed = await claimedBy("w-1", lost, at.store);
    const unclear = { to: stageOf("unclear"), why: "no answer" };
    const checked = await movedBy(at.store.move(claimed, unclear));
    await at.store.move(checked, { to: stageOf("unknown"), why: "nobody knows" });
    await until(() => at.said()).toEqual(["card", "card", "unknown"]);
    await at.ends(fine);
    await until(() => at.said().at(-1)).toBe("ended:U0OLIVIA:1");
    expect(at.posted.at(-1)?.tells).toBe(fine.record.id);
  });

  it.for(["card", "ended:U0OLIVIA:2"])(
    "is looked up, and posted once, where its %s has no answer from Slack",
    async (lost) => {
      let lose = true;
      await using at = await deliverToCrowdedSlack({
        answer({ said }) {
          if (said !== lost || !lose) return undefined;
          lose = false;
          return { ok: false, kind: "lost", reason: "a test" };
        },
      });
      const both = [await at.asks("web-1"), await at.asks("web-2")];
      at.start();
      await until(() => at.said()).toEqual(["card"]);
      for (const one of both) await at.ends(one);
      await until(() => at.said()).toEqual(["card", "ended:U0OLIVIA:2"]);
      await until(() => at.store.sharedCards.outbox.depth()).toBe(0);
      expect(at.said()).toEqual(["card", "ended:U0OLIVIA:2"]);
    },
  );

  it("gives its requests back where its channel is closed: each goes where it can be read", async () => {
    const closed = { ok: false, kind: "refused", error: "is_archived", detail: [] } as const;
    await using at = await deliverToCrowdedSlack({
      answer: ({ channel }) => (channel === "C01OPS" ? closed : undefined),
    });
    const both = [await at.asks("web-1"), await at.asks("web-2")];
    for (const one of both) await at.ends(one);
    at.start();
    await until(() => at.said()).toHaveLength(2);
    expect(at.posted.map(({ channel, said, covers }) => [channel, said, covers])).toEqual([
      ["U0OLIVIA", "card", "result"],
      ["U0OLIVIA", "card", "result"],
    ]);
  });

  it("gives its requests back when it is gone from Redis: those that run get cards of their own", async () => {
    await using at = await deliverToCrowdedSlack();
    const both = [await at.asks("web-1"), await at.asks("web-2")];
    at.start();
    await until(() => at.said()).toEqual(["card"]);
    await until(() => at.store.sharedCards.outbox.depth()).toBe(0);
    const [stored] = await at.store.getMany([both[0]?.record.id ?? ""]);
    await at.redis.del(at.key("shared", (stored && boardOf(stored.delivered)) ?? ""));
    for (const one of both) await at.store.outbox.later(one.record.id, 0);
    await until(() => at.said()).toEqual(["card", "card", "card"]);
    for (const one of both) await at.ends(one);
    await until(() => at.told.length).toBe(2);
  });

  /** Holds up the first process that is about to begin the post of this key. */
  function holdUp(key: string) {
    const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const asked = Promise.withResolvers<void>();
    let isFirst = true;
    return {
      reached: reached.promise,
      /** Lets it ask for its turn, and waits for the answer. */
      async release(): Promise<void> {
        released.resolve();
        await asked.promise;
      },
      async turn({ mark }: Turn, take: () => Promise<TurnAnswer>): Promise<TurnAnswer> {
        if (mark.field !== `said:${key}` || !isFirst) return take();
        isFirst = false;
        reached.resolve();
        await released.promise;
        return take().finally(asked.resolve);
      },
    };
  }

  it("tells a result once when another process tells it with results that came since it was read", async () => {
    const held = holdUp("ended:U0AMIR:2");
    await using at = await deliverToCrowdedSlack({
      turn: held.turn,
      // The process that was held up begins while the post of the other one is in flight.
      async answer({ covers }) {
        if (covers !== "") await held.release();
        return undefined;
      },
    });
    const two = async (who: string) => [
      await at.asks(`web-${who}-1`, who),
      await at.asks(`web-${who}-2`, who),
    ];
    const [mine, his] = [await two("U0OLIVIA"), await two("U0AMIR")];
    at.start();
    await until(() => at.said()).toEqual(["card"]);
    for (const one of his) await at.ends(one);
    await held.reached;
    for (const one of mine) await at.ends(one);
    at.start();
    await until(() => at.said()).toEqual(["card", "ended:U0OLIVIA:2 (ended:U0AMIR:2)"]);
    await until(() => at.store.sharedCards.outbox.depth()).toBe(0);
    await at.stop();
    expect(at.said()).toEqual(["card", "ended:U0OLIVIA:2 (ended:U0AMIR:2)"]);
  });

  it("tells a result once when another process tells it with a request that joined since it was read", async () => {
    const held = holdUp("ended:U0OLIVIA:2");
    await using at = await deliverToCrowdedSlack({ turn: held.turn });
    const mine = [await at.asks("web-1"), await at.asks("web-2")];
    at.start();
    await until(() => at.said()).toEqual(["card"]);
    for (const one of mine) await at.ends(one);
    await held.reached;
    await at.ends(await at.asks("web-3"));
    at.start();
    await until(() => at.said()).toEqual(["card", "ended:U0OLIVIA:3"]);
    await held.release();
    await until(() => at.store.sharedCards.outbox.depth()).toBe(0);
    await at.stop();
    expect(at.said()).toEqual(["card", "ended:U0OLIVIA:3"]);
  });

  it("shows the end of a request at once that joined when all others had ended", async () => {
    let isFull = true;
    await using at = await deliverToCrowdedSlack({
      turn: async ({ mark }, take) =>
        isFull && mark.field.startsWith("said:ended") ? { kind: "wait", waitMs: 20 } : take(),
    });
    const mine = [await at.asks("web-1"), await at.asks("web-2")];
    at.start();
    await until(() => at.said()).toEqual(["card"]);
    for (const request of mine) await at.ends(request);
    await until(() => at.edits).toEqual(["2 requests: 2 canceled"]);
    await at.ends(await at.asks("web-3"));
    await until(() => at.edits.at(-1)).toBe("3 requests: 3 canceled");
    isFull = false;
    await until(() => at.said()).toEqual(["card", "ended:U0OLIVIA:3"]);
    await until(() => at.store.sharedCards.outbox.depth()).toBe(0);
  });

  it("tells a result once when the answer to its reply is lost, and another result comes before that is known", async () => {
    let lose = true;
    const reply = "ended:U0AMIR:2 (ended:U0ADA:2)";
    await using at = await deliverToCrowdedSlack({
      answer({ said, covers }) {
        if (`${said} (${covers})` !== reply || !lose) return undefined;
        lose = false;
        return { ok: false, kind: "lost", reason: "a test" };
      },
    });
    const two = async (who: string) => [
      await at.asks(`web-${who}-1`, who),
      await at.asks(`web-${who}-2`, who),
    ];
    const [mine, his, hers] = [await two("U0OLIVIA"), await two("U0AMIR"), await two("U0ADA")];
    at.start();
    await until(() => at.said()).toEqual(["card"]);
    await at.stop();
    for (const one of [...his, ...hers]) await at.ends(one);
    at.start();
    await until(() => at.said()).toEqual(["card", reply]);
    for (const one of mine) await at.ends(one);
    await until(() => at.said()).toEqual(["card", reply, "ended:U0OLIVIA:2"]);
    await until(() => at.store.sharedCards.outbox.depth()).toBe(0);
    expect(at.said()).toEqual(["card", reply, "ended:U0OLIVIA:2"]);
    expect(at.told).toHaveLength(6);
  });

  it("is joined by two processes as by one", async () => {
    await using at = await deliverToCrowdedSlack();
    const asked = await Promise.all(
      Array.from({ length: 12 }, (_, n) => at.asks(`vm-${n}`, n % 2 === 0 ? "U0ADA" : undefined)),
    );
    at.start();
    at.start();
    for (const one of asked) await at.ends(one);
    await until(() => {
      const told = at.posted.flatMap(({ tells }) => tells.split(" ").filter(Boolean));
      return told.toSorted();
    }).toEqual(asked.map(({ record }) => record.id).toSorted());
    const stored = await at.store.getMany(asked.map(({ record }) => record.id));
    expect(new Set(stored.map(({ delivered }) => boardOf(delivered))).size).toBe(1);
    expect(at.said().filter((said) => said.startsWith("card"))).toHaveLength(1);
  });
});

it("a request that ended before its card was posted is told in one message", async () => {
  await using at = await deliverToCrowdedSlack();
  const ended = await at.asks("web-1");
  await at.ends(ended);
  at.start(true);
  await until(() => at.said()).toEqual(["card (result)"]);
  await until(() => at.store.outbox.depth()).toBe(0);
  expect(at.posted[0]?.text).toBe("❌ Restart of web-1 was canceled: a test.");
});
