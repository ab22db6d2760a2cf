import { expect, it, vi } from "vitest";
import { createJournal, newNonce } from "../../../src/core/request/journal.ts";
import { createLatest } from "../../../src/core/request/latest.ts";
import { testRedis } from "../../support/with-redis.ts";
import { readsOf } from "../../../src/core/request/stage.ts";
import { claimedRestart, stageOf } from "../asking.ts";

/** Opens a process that reads repeatedly, and the journal of another one that moves requests. */
async function openReader() {
  const { redis, key } = await testRedis();
  const store = createJournal(redis, key);
  const getMany = vi.fn(store.getMany);
  const requestKey = (id: string) => key("request", id);
  return {
    redis,
    requestKey,
    store,
    latest: createLatest(redis, requestKey, getMany),
    /** Returns the IDs that were read since the last call. */
    read: () => getMany.mock.calls.splice(0).flatMap(([ids]) => ids),
    [Symbol.asyncDispose]: async () => redis.disconnect(),
  };
}

it("requests that are read again and again are read once for each change", async () => {
  await using here = await openReader();
  const { store } = here;
  // More than one script reads
  const names = Array.from({ length: 205 }, (_, n) => `web-${n}`);
  const requests = await Promise.all(names.map((name) => claimedRestart(store, name)));
  const ids = requests.map(({ record }) => record.id);
  expect(await here.latest(ids)).toEqual(await store.getMany(ids));
  expect(here.read()).toEqual(ids);
  expect(await here.latest(ids.toReversed())).toEqual(await store.getMany(ids.toReversed()));
  expect(here.read()).toEqual([]);
  const [one, ended] = requests;
  if (!one || !ended) throw new Error("not written down");
  await store.saveFacts(one, { ...one.stage, reads: { quietLooks: 7 } });
  await store.move(ended, { to: stageOf("done"), why: "proven" });
  const now = await here.latest([...ids, "r-gone"]);
  expect(now).toEqual(await store.getMany(ids));
  expect(now[0] && readsOf(now[0].stage)).toEqual({ quietLooks: 7 });
  expect(here.read().toSorted()).toEqual([one.record.id, ended.record.id, "r-gone"].toSorted());
  // A request that has ended isn't kept.
  await here.latest(ids);
  expect(here.read()).toEqual([ended.record.id]);
});

it("a request with the same revision and another claim is another one: Redis lost its last writes", async () => {
  await using here = await openReader();
  const { record, attempt } = await claimedRestart(here.store, "web-1");
  await here.latest([record.id]);
  const nonce = newNonce();
  await here.redis.hset(here.requestKey(record.id), `claim:${attempt}`, nonce);
  expect(await here.latest([record.id])).toMatchObject([{ nonce }]);
  await here.redis.del(here.requestKey(record.id));
  expect(await here.latest([record.id])).toEqual([]);
});
