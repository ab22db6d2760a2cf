import { describe, expect, it, vi } from "vitest";
import { commands } from "../../support/commands.ts";
import { startDelivery } from "../../support/start-delivery.ts";
import { silentLog } from "../../../src/log/log.ts";
import { createOutbox } from "../../../src/redis/outbox.ts";
import { createRecords } from "../../../src/redis/record.ts";
import { isChange } from "../../../src/registry/define.ts";
import { type Journal, createJournal } from "../../../src/core/request/journal.ts";
import type { RequestIn } from "../../../src/core/request/stored-request.ts";
import { type Source, messageWork } from "../../../src/core/deliver/deliver.ts";
import { createRateLimiter } from "../../../src/core/deliver/rate-limiter.ts";
import { requestSource } from "../../../src/core/deliver/requests.ts";
import { textAt } from "../../../src/slack/json.ts";
import type { Web } from "../../../src/slack/web.ts";
import {
  claimedBy,
  storeRequest,
  movedBy,
  policy,
  restartOf,
  stageOf,
  vmTarget,
} from "../asking.ts";
import { testRedis } from "../../support/with-redis.ts";
import { until } from "../../support/until.ts";

const longMs = 60_000;
const unlimited = {
  posts: { interval: 1, burst: 1000, reserve: 0 },
  edits: { interval: 1, burst: 1000, reserve: 0 },
};

/** Delivers to a Slack that takes everything at once, except cards that a test holds back. */
async function deliveringWith(held: (name: string) => Promise<void> | undefined) {
  const { redis, key, [Symbol.asyncDispose]: close } = await testRedis();
  const store = createJournal(redis, key);
  const begun: string[] = [];
  const told: string[] = [];
  const notices: string[] = [];
  const recorded: string[] = [];
  const toldElsewhere: string[] = [];
  const waiting = new Set<() => void>();
  let calls = 0;
  const web: Web = {
    async call(_method, args = {}) {
      calls += 1;
      const ts = `1763600000.${String(calls).padStart(6, "0")}`;
      const ok = { ok: true as const, data: { ts, channel: "C01OPS" } };
      const said = textAt(args, "metadata", "event_payload", "said");
      if (said !== "" && said !== "card") {
        notices.push(said);
        return ok;
      }
      const name =
        /([\w-]+)\W* (?:in payments|\(payments|was )/.exec(textAt(args, "text"))?.[1] ?? "";
      begun.push(name);
      await held(name);
      told.push(name);
      for (const look of waiting) look();
      return ok;
    },
  };
  const source = requestSource({
    onTold: () => undefined,
    log: silentLog(),
    store,
    commands: commands.filter(isChange),
    web,
    config: { policy },
    namesOf: async () => undefined,
    hasWorker: async () => true,
    changesSince: async () => [],
    askingAbout: async () => [],
    recordResults: async ({ record }) => void recorded.push(record.id),
    factsAfter: async () => [],
    tellElsewhere: async ({ record }) => void toldElsewhere.push(record.id),
    attestationNote: async () => undefined,
    at: async () => undefined,
  });
  const rateLimiter = createRateLimiter(redis, key, unlimited);
  const delivery = startDelivery([source], {
    web,
    rateLimiter,
    redis,
    key,
  });
  return {
    store,
    redis,
    requestKey: (id: string) => key("request", id),
    key,
    rateLimiter,
    begun,
    told,
    notices,
    recorded,
    toldElsewhere,
    delivery,
    async tells(name: string): Promise<void> {
      const { promise, resolve } = Promise.withResolvers<void>();
      const look = () => told.includes(name) && resolve();
      waiting.add(look);
      look();
      await promise;
    },
    async [Symbol.asyncDispose]() {
      await delivery.close(2000);
      await close();
    },
  };
}

/** Starts the delivery of another source next to `here`. That source owes no message. */
const deliverFrom = (
  { rateLimiter, redis, key }: Awaited<ReturnType<typeof deliveringWith>>,
  outbox: Source["outbox"],
  prepareMessages: Source["prepareMessages"],
) =>
  startDelivery([{ outbox, prepareMessages }], {
    web: { call: () => Promise.reject(new Error("Nothing is owed.")) },
    rateLimiter,
    redis,
    key,
  });

/** Moves a request to its end, as its worker would. */
async function endRequest(
  store: Journal,
  request: RequestIn<"authorized">,
): Promise<RequestIn<"done">> {
  const claimed = await claimedBy("w-1", request, store);
  const to = { ...claimed.stage, state: "accepted" } as const;
  const accepted = await movedBy(store.move(claimed, { to, why: "accepted" }));
  return movedBy(store.move(accepted, { to: { ...to, state: "done" }, why: "done" }));
}

const named = (name: string) => restartOf(vmTarget(name));
function plain(name: string) {
  const { approval: _none, ...submission } = named(name);
  return submission;
}

describe("the delivery of messages", () => {
  it("goes on with others while one of them takes long", async () => {
    const slow = Promise.withResolvers<void>();
    await using here = await deliveringWith((name) => (name === "slow" ? slow.promise : undefined));
    await storeRequest(here.store, named("slow"));
    await storeRequest(here.store, named("with-it"));
    await here.tells("with-it");
    await storeRequest(here.store, named("after-it"));
    await here.tells("after-it");
    expect(here.told).not.toContain("slow");
    slow.resolve();
    await here.tells("slow");
  });

  it("has at most twenty under way, and takes another when one has ended", async () => {
    const gates = Array.from({ length: 22 }, () => Promise.withResolvers<void>());
    await using here = await deliveringWith((name) => gates[Number(name)]?.promise);
    for (const n of gates.keys()) await storeRequest(here.store, named(String(n)));
    await until(() => here.begun.length).toBe(20);
    gates[3]?.resolve();
    await here.tells("3");
    await until(() => here.begun.length).toBe(21);
    expect(here.told).toEqual(["3"]);
    for (const gate of gates) gate.resolve();
    await here.tells("21");
  });

  it("never has two of one request under way, and tells at once what moved meanwhile", async () => {
    const slow = Promise.withResolvers<void>();
    await using here = await deliveringWith(() => slow.promise);
    const request = await storeRequest(here.store, named("moved"));
    await until(() => here.begun).toEqual(["moved"]);
    await here.store.move(request, { to: stageOf("cancelled"), why: "cancelled" });
    // Another process would make it due like this, if this one took too long.
    await here.store.outbox.later(request.record.id, 0);
    await storeRequest(here.store, named("other"));
    await until(() => here.begun.length).toBe(2);
    expect(here.begun).toEqual(["moved", "other"]);
    slow.resolve();
    await until(() => here.begun.filter((name) => name === "moved").length).toBe(2);
    await until(() => here.store.outbox.depth()).toBe(0);
  });

  it("says no result that another process said while the card took long", async () => {
    const slow = Promise.withResolvers<void>();
    await using here = await deliveringWith(() => slow.promise);
    const request = await storeRequest(here.store, named("told"));
    await here.store.move(request, { to: stageOf("cancelled"), why: "cancelled" });
    await until(() => here.begun.length).toBeGreaterThan(0);
    await here.store.outbox.remember(request.record.id, { "said:result": "1763600000.000100" });
    slow.resolve();
    await until(() => here.store.outbox.depth()).toBe(0);
    expect(here.notices).not.toContain("result");
  });

  it("keeps a result that is posted, though the edit that follows must wait for its turn", async () => {
    await using here = await deliveringWith(() => undefined);
    const { store, redis, requestKey } = here;
    const request = await storeRequest(store, plain("waits"));
    const { id } = request.record;
    await until(() => redis.hget(requestKey(id), "card")).not.toBeNull();
    await here.rateLimiter.pause("edit", longMs);
    await endRequest(store, request);
    await until(() => redis.hget(requestKey(id), "said:result")).toMatch(/^\d+\.\d+$/);
    expect(await store.outbox.depth()).toBe(1);
    expect(here.notices).toEqual(["result"]);
  });

  it("says a result at once, though an edit waits since before it ended", async () => {
    await using here = await deliveringWith(() => undefined);
    const { store, redis, requestKey } = here;
    const request = await storeRequest(store, plain("waits"));
    const { id } = request.record;
    await until(() => redis.hget(requestKey(id), "card")).not.toBeNull();
    await here.rateLimiter.pause("edit", longMs);
    const claimed = await claimedBy("w-1", request, store);
    const to = { ...claimed.stage, state: "unclear" } as const;
    const unclear = await movedBy(store.move(claimed, { to, why: "unclear" }));
    const isPutOff = async () =>
      Number(await redis.zscore(store.outbox.list, store.outbox.memberOf(id))) >
      (await store.now()) + 5_000;
    await until(isPutOff).toBe(true);
    await movedBy(store.move(unclear, { to: { ...to, state: "done" }, why: "done" }));
    await until(() => redis.hget(requestKey(id), "said:result")).toMatch(/^\d+\.\d+$/);
    expect(here.notices).toEqual(["result"]);
    await until(isPutOff).toBe(true);
    expect(here.told).toHaveLength(1);
  });

  it("notes that results are recorded, though the result must wait for its turn", async () => {
    await using here = await deliveringWith(() => undefined);
    const { store, redis, requestKey } = here;
    const request = await storeRequest(store, plain("waits"));
    const { id } = request.record;
    await until(() => redis.hget(requestKey(id), "card")).not.toBeNull();
    await here.rateLimiter.pause({ post: "C01OPS" }, longMs);
    await endRequest(store, request);
    await until(() => redis.hget(requestKey(id), "said:afterwards")).toBe("1");
    const before = here.notices.length;
    await store.outbox.later(id, 0);
    await until(async () =>
      Number(await redis.zscore(store.outbox.list, store.outbox.memberOf(id))),
    ).toBeGreaterThan(await store.now());
    expect(here.notices).toHaveLength(before);
    expect(here.recorded).toEqual([id]);
    expect(here.notices).toEqual([]);
  });

  it("records results again, and tells them elsewhere, where a change took effect late", async () => {
    await using here = await deliveringWith(() => undefined);
    const { store } = here;
    const request = await storeRequest(store, plain("late"));
    const claimed = await claimedBy("w-1", request, store);
    const { call, reads, setbacks } = claimed.stage;
    const unclear = { state: "unclear", call, reads, setbacks } as const;
    const unsure = await movedBy(store.move(claimed, { to: unclear, why: "no answer" }));
    const none = { state: "not-applied", call, reads } as const;
    const notApplied = await movedBy(store.move(unsure, { to: none, why: "no effect" }));
    await until(() => store.outbox.depth()).toBe(0);
    const { id } = request.record;
    expect([here.recorded, here.toldElsewhere]).toEqual([[id], []]);
    await store.move(notApplied, { to: { ...none, state: "done", setbacks }, why: "late" });
    await until(() => here.toldElsewhere).toEqual([id]);
    expect(here.recorded).toEqual([id, id]);
  });

  it("tells a change elsewhere once it is posted", async () => {
    const slow = Promise.withResolvers<void>();
    await using here = await deliveringWith(() => slow.promise);
    const request = await endRequest(here.store, await storeRequest(here.store, plain("heard")));
    await until(() => here.begun.length).toBeGreaterThan(0);
    expect(here.toldElsewhere).toEqual([]);
    slow.resolve();
    await until(() => here.store.outbox.depth()).toBe(0);
    expect(here.toldElsewhere).toEqual([request.record.id]);
  });

  it("puts nothing off that another process moved while it was read", async () => {
    await using here = await deliveringWith(() => undefined);
    const { redis, key } = here;
    const mine = createOutbox(redis, key, "notice", (id) => key("thing", id));
    const others = createRecords(redis, key, { open: key("open"), outbox: mine });
    const move = (revision: number) =>
      others.move({ id: "a", revision, state: "open", final: false, keptMs: longMs, fields: {} });
    await move(0);
    const read: number[] = [];
    const delivery = deliverFrom(
      here,
      { ...mine, onWake: () => undefined },
      async (_id, fields) => {
        const revision = Number(fields["revision"]);
        read.push(revision);
        if (revision < 3) await move(revision);
        return { createdAt: 1, revision, messages: [], waitMs: longMs };
      },
    );
    await until(() => read).toEqual([1, 2, 3]);
    await delivery.close(2000);
    expect(await mine.depth()).toBe(1);
  });

  it("reads again what was asked for while it was read, though its revision is the same", async () => {
    await using here = await deliveringWith(() => undefined);
    const { redis, key } = here;
    const mine = createOutbox(redis, key, "notice", (id) => key("thing", id));
    await redis.hset(key("thing", "a"), "revision", 1);
    let reads = 0;
    const delivery = deliverFrom(here, mine, async (id) => {
      reads += 1;
      if (reads === 1) await mine.later(id, 0);
      return { createdAt: 1, revision: 1, messages: [] };
    });
    await mine.later("a", 0);
    await until(() => mine.depth()).toBe(0);
    await delivery.close(2000);
    expect(reads).toBe(2);
  });

  it("comes back ever later to what it can't read, and logs that once", async () => {
    await using here = await deliveringWith(() => undefined);
    const { redis, key, store, rateLimiter } = here;
    const outbox = createOutbox(redis, key, "notice", (id) => key("thing", id));
    await redis.hset(key("thing", "a"), "revision", "broken");
    const lines: unknown[] = [];
    const log = { ...silentLog(), warn: (...line: unknown[]) => void lines.push(line) };
    const [work] = messageWork([{ outbox, prepareMessages: async () => undefined }], {
      web: { call: () => Promise.reject(new Error("Nothing is owed.")) },
      rateLimiter,
      log,
      refusal: async () => undefined,
      us: () => ({ botId: "B0GATEHOUSE", botUserId: "U0GATEHOUSE" }),
      now: store.now,
      retryMs: 3_000,
    });
    const waitedAfter = async (ms: number) => {
      await outbox.later("a", 0);
      const taken = await outbox.take("a");
      if (!taken || !("mark" in taken)) throw new Error("it was due");
      const before = await store.now();
      const clock = vi.spyOn(performance, "now").mockReturnValue(ms);
      await work?.handle("a", taken.mark);
      clock.mockRestore();
      const dueAt = (await outbox.dueAt("a")) ?? 0;
      return { most: dueAt - before, least: dueAt - (await store.now()) };
    };
    for (const [ms, waitMs] of [
      [0, 1_000],
      [1_000, 1_000],
      [20_000, 20_000],
      [3_600_000, 60_000],
    ] as const) {
      const { least, most } = await waitedAfter(ms);
      expect([least <= waitMs, most >= waitMs]).toEqual([true, true]);
    }
    expect(lines).toEqual([["slack.unreadable-subject", { notice: "a" }]]);
  });

  it("waits at its close for what is under way", async () => {
    const slow = Promise.withResolvers<void>();
    await using here = await deliveringWith(() => slow.promise);
    await storeRequest(here.store, named("slow"));
    await until(() => here.begun).toEqual(["slow"]);
    const closed = here.delivery.close(longMs);
    slow.resolve();
    await closed;
    expect(here.told).toEqual(["slow"]);
    expect(await here.store.outbox.depth()).toBe(0);
  });
});
