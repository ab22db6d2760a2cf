import { mkdtempDisposable } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { silentLog } from "../../../src/log/log.ts";
import { createJournal, type Journal } from "../../../src/core/request/journal.ts";
import type { RedisClient } from "../../../src/redis/redis.ts";
import { checkLedger, openLedger } from "../../../src/core/request/ledger.ts";
import { testRedis } from "../../support/with-redis.ts";
import { auditOf } from "../asking.ts";

const gap = "sealed audit records after number 0 have disappeared or were replaced";
const lost = "Redis lost 1 sent request: vm restart of vm-1 (r-lost)";

async function start() {
  const redis = await testRedis();
  const store = createJournal(redis.redis, redis.key);
  const folder = await mkdtempDisposable(path.join(tmpdir(), "gatehouse-freeze-"));
  const close: (() => PromiseLike<void>)[] = [redis[Symbol.asyncDispose], folder.remove];
  const records = async (kind: string) =>
    (await auditOf(redis.redis, redis.key("audit"))).filter(({ what }) => what === kind);
  return {
    ...redis,
    store,
    records,
    owed: async () => (await store.freezeNews.owed()).map(({ news }) => news),
    frozenFor: async () => (await store.freezeState())?.reason,
    /**
     * Writes the ledger of a worker with a send that Redis doesn't know. Returns the check of it.
     */
    async worker(name: string, request: string) {
      const ledger = await openLedger(path.join(folder.path, name), name);
      close.unshift(() => ledger.close());
      const about = { command: "vm restart", target: "vm-1" };
      await ledger.write({ request, attempt: 1, at: Date.now(), ...about });
      return () => checkLedger(ledger, store, silentLog());
    },
    async [Symbol.asyncDispose]() {
      for (const one of close) await one();
    },
  };
}

/** Loses the answer to the next script that Redis runs. */
function loseAnswer(redis: RedisClient): void {
  const send = redis.sendCommand.bind(redis);
  redis.sendCommand = async (command, stream) => {
    const answer = await send(command, stream);
    if (!command.name.startsWith("eval")) return answer;
    redis.sendCommand = send;
    throw new Error("Command timed out");
  };
}

const ada = { id: "U0ADA", name: "ada" };
const vera = { by: "vera", id: "U0VERA", reason: "incident 4711" };

const findsGap = (store: Journal) =>
  store.freeze({ by: "Gatehouse", cause: "records-lost", reason: gap });

describe("changes that freeze for two reasons", () => {
  it("say the weightier one, whichever is found first, and both are on record in the order found", async () => {
    for (const order of [
      [gap, lost],
      [lost, gap],
    ]) {
      await using here = await start();
      const check = await here.worker("w-1", "r-lost");
      for (const reason of order) await (reason === gap ? findsGap(here.store) : check());
      expect(await here.frozenFor()).toBe(lost);
      const told = order[0] === gap ? [gap, lost] : [lost];
      expect((await here.records("freeze")).map(({ why }) => why)).toEqual(told);
    }
  });

  it("are frozen since the first", async () => {
    await using here = await start();
    await findsGap(here.store);
    const since = (await here.store.freezeState())?.at;
    await (
      await here.worker("w-1", "r-lost")
    )();
    expect((await here.store.freezeState())?.at).toBe(since);
  });

  it("keep what a person said behind each weightier reason, and take none of a person's for theirs", async () => {
    await using here = await start();
    expect(await here.store.freeze(vera)).toBe(true);
    expect(await findsGap(here.store)).toBe(true);
    expect(await here.frozenFor()).toBe(`${gap}; vera froze all changes before: incident 4711`);
    await (
      await here.worker("w-1", "r-lost")
    )();
    expect(await here.store.freezeState()).toMatchObject({
      by: "Gatehouse",
      reason: `${lost}; vera froze all changes before: incident 4711`,
    });
    expect(await here.store.freeze({ by: "amir", id: "U0AMIR", reason: "" })).toBe(false);
    expect((await here.records("freeze")).map(({ who }) => who)).toEqual([
      "U0VERA",
      "Gatehouse",
      "Gatehouse",
    ]);
  });

  it("name the sends of each worker that Redis lost some of, once: a thaw marks all of them as checked", async () => {
    await using here = await start();
    const checks = [await here.worker("w-1", "r-1"), await here.worker("w-2", "r-2")];
    for (let n = 0; n < 3; n++) for (const check of checks) await check();
    const reason = await here.frozenFor();
    for (const id of ["r-1", "r-2"]) expect(reason?.split(`(${id})`)).toHaveLength(2);
    expect(await here.records("ledger-ahead")).toHaveLength(2);
    await here.store.thaw(ada);
    for (const check of checks) expect(await check()).toEqual([]);
    expect(await here.frozenFor()).toBeUndefined();
  });
});

describe("a freeze and a thaw", () => {
  it("are on record and owed to people once each, however often one interaction is handled", async () => {
    await using here = await start();
    loseAnswer(here.redis);
    await expect(here.store.freeze({ ...vera, act: "1" })).rejects.toThrow("Command timed out");
    expect(await here.records("freeze")).toHaveLength(1);
    expect(await here.store.freeze({ ...vera, act: "1" })).toBe(true);

    loseAnswer(here.redis);
    await expect(here.store.thaw({ ...ada, act: "2" })).rejects.toThrow("Command timed out");
    const ended = { by: "U0VERA", why: "incident 4711" };
    expect(await here.records("thaw")).toMatchObject([{ who: "U0ADA", ended }]);
    for (let n = 0; n < 2; n++)
      expect(await here.store.thaw({ ...ada, act: "2" })).toMatchObject({
        kind: "thawed",
        ended: { by: "vera", reason: "incident 4711" },
      });

    await here.store.freeze({ ...vera, act: "4" });
    expect(await here.store.thaw({ ...ada, act: "2" })).toMatchObject({ kind: "newer" });
    await here.store.thaw({ ...ada, act: "5" });
    expect(await here.store.freeze({ ...vera, act: "1" })).toBe(true);
    expect(await here.frozenFor()).toBeUndefined();
    expect(await here.store.thaw({ ...ada, act: "3" })).toEqual({ kind: "not-frozen" });
    expect(await here.records("freeze")).toHaveLength(2);
    expect(await here.records("thaw")).toHaveLength(2);
    const twice = [
      { is: "frozen", by: "vera", reason: "incident 4711" },
      { is: "thawed", by: "ada", ended: { by: "vera", reason: "incident 4711" } },
    ];
    expect(await here.owed()).toEqual([...twice, ...twice]);
  });

  it("are owed to people, too, when Gatehouse itself froze and Redis's answer is lost", async () => {
    await using here = await start();
    loseAnswer(here.redis);
    await expect(findsGap(here.store)).rejects.toThrow("Command timed out");
    expect(await findsGap(here.store)).toBe(false);
    expect(await here.owed()).toEqual([{ is: "frozen", by: "Gatehouse", reason: gap }]);
  });
});

describe("a thaw", () => {
  it("leaves a freeze whose reason changed after the person asked, and the sends that it names", async () => {
    await using here = await start();
    await here.store.freeze(vera);
    // As if that were an hour ago; the person asked a minute ago
    const frozen = JSON.parse((await here.redis.get(here.key("freeze"))) ?? "") as { at: number };
    const at = frozen.at - 3_600_000;
    await here.redis.set(here.key("freeze"), JSON.stringify({ ...frozen, at }));
    const check = await here.worker("w-1", "r-lost");
    await check();
    const reason = `${lost}; vera froze all changes before: incident 4711`;
    const thaw = { ...ada, act: "1", askedAgoMs: 60_000 };
    expect(await here.store.thaw(thaw)).toMatchObject({ kind: "newer", stands: { reason } });
    expect(await here.frozenFor()).toBe(reason);
    expect(await here.redis.exists(here.key("sends", "looked-at"))).toBe(0);
    expect(await here.records("thaw")).toEqual([]);

    expect(await here.store.thaw({ ...ada, act: "2" })).toMatchObject({ kind: "thawed" });
    expect(await check()).toEqual([]);
  });

  it("ends no freeze that began since a dead gateway left it", async () => {
    await using here = await start();
    await here.store.freeze(vera);
    const late = { ...ada, act: "1", askedAgoMs: 5 * 60_000 };
    expect(await here.store.thaw(late)).toMatchObject({ kind: "newer", stands: vera });
    expect(await here.frozenFor()).toBe("incident 4711");
  });

  it("ends a freeze from before Redis's clock was set back", async () => {
    await using here = await start();
    const at = (await here.store.now()) + 3600_000;
    const freeze = { by: "vera", id: "U0VERA", reason: "", at, changedAt: at };
    await here.redis.set(here.key("freeze"), JSON.stringify(freeze));
    expect(await here.store.thaw({ ...ada, askedAgoMs: 60_000 })).toEqual({
      kind: "thawed",
      ended: freeze,
    });
  });
});
