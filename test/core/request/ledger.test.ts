import { mkdtemp, rm, appendFile, readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { silentLog } from "../../../src/log/log.ts";
import { checkLedger, openLedger } from "../../../src/core/request/ledger.ts";
import { createJournal } from "../../../src/core/request/journal.ts";
import { testRedis } from "../../support/with-redis.ts";
import { claimedTwice, storeRequest, restartOf, vmTarget } from "../asking.ts";

async function folder() {
  const dir = await mkdtemp(path.join(tmpdir(), "gatehouse-ledger-"));
  return { dir, [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }) };
}

const entry = (request: string, attempt = 1) => ({
  request,
  attempt,
  at: Date.now(),
  command: "vm restart",
  target: "vm-1",
});

describe("the send ledger", () => {
  it("takes an attempt once, also from another process that shares the folder", async () => {
    await using here = await folder();
    const first = await openLedger(here.dir, "w-1");
    expect(await first.write(entry("r-1"))).toBe("written");
    expect(await first.write(entry("r-1"))).toBe("recorded-before");
    expect(await first.write(entry("r-1", 2))).toBe("written");
    await first.close();
    const second = await openLedger(here.dir, "w-2");
    expect(await second.write(entry("r-1", 2))).toBe("recorded-before");
    await second.close();
  });

  it("names a torn last line once, and keeps what stands before it", async () => {
    await using here = await folder();
    const first = await openLedger(here.dir, "w-1");
    await first.write(entry("r-1"));
    await first.close();
    const [name = ""] = await readdir(here.dir);
    await appendFile(path.join(here.dir, name), '{"request":"r-2","att');
    const second = await openLedger(here.dir, "w-2");
    expect(second.entries().map(({ request }) => request)).toEqual(["r-1"]);
    expect(second.torn).toEqual([{ file: name, whole: 1, text: '{"request":"r-2","att' }]);
    await second.close();
    const third = await openLedger(here.dir, "w-3");
    expect(third.entries()).toHaveLength(1);
    expect(third.torn).toEqual([]);
    await third.close();
  });

  it("remembers a send of which only the name can be read", async () => {
    await using here = await folder();
    const named = { request: "r-1", attempt: 1 };
    const lines = [named, { ...named, attempt: 2, at: "now", nonce: 7, command: 1, target: {} }];
    const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
    await appendFile(path.join(here.dir, "sends-w-1.jsonl"), `${text}{"attempt":3}\n"r-1"\n`);
    const ledger = await openLedger(here.dir, "w-2");
    expect(ledger.entries()).toMatchObject([named, { attempt: 2, nonce: "unreadable" }]);
    expect(await ledger.write(entry("r-1"))).toBe("recorded-before");
    await ledger.close();
  });

  it("takes no request of a newer version for a lost one", async () => {
    await using here = await folder();
    await using redis = await testRedis();
    const store = createJournal(redis.redis, redis.key);
    const ledger = await openLedger(here.dir, "w-1");
    await ledger.write(entry("r-newer"));
    const newer = { record: '{"v":2,"id":"r-newer"}', state: "resting", attempt: "1" };
    await redis.redis.hset(redis.key("request", "r-newer"), newer);
    expect(await checkLedger(ledger, store, silentLog())).toEqual([]);
    expect(await store.freezeState()).toBeUndefined();
    await ledger.close();
  });

  it("freezes all changes when another worker made the same attempt, because Redis had lost the first claim", async () => {
    await using here = await folder();
    await using redis = await testRedis();
    const store = createJournal(redis.redis, redis.key);
    const { approval: _none, ...plain } = restartOf(vmTarget("a"));
    const request = await storeRequest(store, plain);
    const claims = await claimedTwice({ ...redis, store }, request);
    const found: number[] = [];
    for (const [n, { record, attempt, nonce }] of claims.entries()) {
      const ledger = await openLedger(path.join(here.dir, String(n)), `w-${n}`);
      await ledger.write({ ...entry(record.id, attempt), nonce });
      found.push((await checkLedger(ledger, store, silentLog())).length);
      await ledger.close();
    }
    expect(found).toEqual([1, 0]);
    expect((await store.freezeState())?.reason).toContain(request.record.id);
  });

  it("believes an entry without a nonce, as earlier versions wrote it, by its attempt", async () => {
    await using here = await folder();
    await using redis = await testRedis();
    const store = createJournal(redis.redis, redis.key);
    const { approval: _none, ...plain } = restartOf(vmTarget("a"));
    const request = await storeRequest(store, plain);
    await claimedTwice({ ...redis, store }, request);
    const ledger = await openLedger(here.dir, "w-1");
    await ledger.write(entry(request.record.id, 1));
    expect(await checkLedger(ledger, store, silentLog())).toEqual([]);
    await ledger.close();
  });

  it("freezes all changes when Redis doesn't know a send, until an administrator has looked", async () => {
    await using here = await folder();
    await using redis = await testRedis();
    const store = createJournal(redis.redis, redis.key);
    const ledger = await openLedger(here.dir, "w-1");
    await ledger.write(entry("r-lost"));
    expect(await checkLedger(ledger, store, silentLog())).toHaveLength(1);
    expect((await store.freezeState())?.reason).toContain("vm restart of vm-1 (r-lost)");
    await store.thaw({ id: "U0ADA", name: "ada" });
    expect(await checkLedger(ledger, store, silentLog())).toEqual([]);
    expect(await store.freezeState()).toBeUndefined();
    await ledger.close();
  });
});
