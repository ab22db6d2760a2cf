import { describe, expect, it } from "vitest";
import { freezeFacts } from "../../../src/core/facts/freeze-facts.ts";
import { type Journal, newNonce } from "../../../src/core/request/journal.ts";
import { testJournal } from "../../support/with-redis.ts";
import { garbage } from "../../support/only-whole.ts";
import {
  called,
  claimedRestart,
  member,
  oneOf,
  requestIn,
  restartOf,
  storeRequest,
  vmTarget,
} from "../asking.ts";

const ada = { id: "U0ADA", name: "ada" };
const unreadable = { by: "Gatehouse", reason: "the freeze in Redis can't be read" };
/** A freeze for a reason that only another release knows. */
const ofAnotherRelease = JSON.stringify({ by: "Gatehouse", cause: "moon", reason: "full", at: 1 });

async function claims(store: Journal) {
  const { approval: _none, ...submission } = restartOf(vmTarget("web-1"));
  const request = await storeRequest(store, submission);
  const to = { state: "sending", ...called({ sentAt: await store.now() }) } as const;
  const claim = { vmIds: [], nonce: newNonce() };
  return store.move(request, { to, attempt: 1, owner: "w-1", why: "claimed", claim });
}

describe("a freeze that can't be read", () => {
  it.each([...garbage, ofAnotherRelease])(
    "is a freeze that only a person ends: %s",
    async (text) => {
      await using here = await testJournal();
      const { store, redis, key } = here;
      await redis.set(key("freeze"), text);
      expect(await store.freezeState()).toMatchObject(unreadable);
      expect(await claims(store)).toMatchObject({ kind: "frozen", freeze: unreadable });
      expect(await store.useOnce("a", 60_000)).toMatchObject({
        kind: "frozen",
        freeze: unreadable,
      });
      const vera = { by: "vera", id: "U0VERA", reason: "incident 4711" };
      expect(await store.freeze(vera)).toBe(false);
      expect(await store.freezeState()).toMatchObject(unreadable);
      expect(await store.thaw(ada)).toMatchObject({ kind: "thawed", ended: unreadable });
      expect(await store.freezeState()).toBeUndefined();
      expect(await claims(store)).toMatchObject({ kind: "moved" });
    },
  );

  it("is told without a time that nobody knows", async () => {
    await using here = await testJournal();
    await here.redis.set(here.key("freeze"), "{");
    const none = async () => [];
    const [fact] = await freezeFacts(here.store).read({
      targets: [],
      change: undefined,
      isFresh: false,
      tellsRecent: false,
      requests: { open: none, on: none },
      commands: [],
      now: await here.store.now(),
    });
    expect(fact?.text.value).toBe(`Gatehouse froze all changes: “${unreadable.reason}”.`);
    expect(fact?.since).toBeUndefined();
  });

  it("keeps a send that Redis lost in mind", async () => {
    await using here = await testJournal();
    await here.redis.set(here.key("freeze"), "{");
    const lost = { by: "Gatehouse", cause: "sends-lost", reason: "Redis lost r-1" } as const;
    expect(await here.store.freeze({ ...lost, sends: ["r-1 1"] })).toBe(true);
    expect([...(await here.store.named(["r-1 1"]))]).toEqual(["r-1 1"]);
    const reason = `Redis lost r-1; ${unreadable.reason}`;
    expect(await here.store.freezeState()).toMatchObject({ reason });
  });

  it("hides no news of other freezes", async () => {
    await using here = await testJournal();
    await here.redis.rpush(here.key("freeze", "news"), "1-1 {");
    await here.store.freeze({ by: "vera", reason: "" });
    const owed = await here.store.freezeNews.owed();
    expect(owed.map(({ news }) => news?.by)).toEqual([undefined, "vera"]);
    for (const news of owed) await here.store.freezeNews.forget(news);
    expect(await here.store.freezeNews.owed()).toEqual([]);
  });
});

describe("a request of which a part can't be read", () => {
  it("is as good as gone, and keeps its target locked", async () => {
    await using here = await testJournal();
    const { store, redis, key } = here;
    const request = await claimedRestart(store, "web-1");
    const hash = key("request", request.record.id);
    const { runsUntil: _always, ...endless } = request.record;
    const call = JSON.stringify({ call: {}, reads: {} });
    const broken = [
      ...garbage.flatMap((text) => [{ record: text }, { stage: text }]),
      { record: JSON.stringify(endless) },
      { stage: call },
      { state: "levitating" },
    ];
    const whole = await redis.hgetall(hash);
    for (const fields of broken) {
      await redis.hset(hash, { ...whole, ...fields });
      expect(await store.get(request.record.id), JSON.stringify(fields)).toBeUndefined();
      // An equal request would be the same one.
      await redis.del(await redis.keys(key("same", "*")));
      expect(await claims(store)).toMatchObject({ kind: "locked", holder: request.record.id });
    }
    await redis.hset(hash, whole);
    expect(await store.get(request.record.id)).toBeDefined();
  });

  it("has no approval by a vote that can't be read", async () => {
    await using here = await testJournal();
    const { store, redis, key } = here;
    const from = ["U0AMIR", "U0BEA"];
    const two = { ...oneOf(from), required: 2, votes: [{ from, required: 2 }] };
    const request = await storeRequest(store, restartOf(vmTarget("a"), { approval: two }));
    const { id, approval } = request.record;
    const seen = approval?.digest.slice(0, 16) ?? "";
    expect(await store.vote(request, member("U0AMIR"), "approve", seen)).toMatchObject({
      result: "counted",
    });
    const whole = (await redis.hget(key("request", id), "vote:U0AMIR")) ?? "";
    const votesWith = async (text: string) => {
      await redis.hset(key("request", id), "vote:U0AMIR", text);
      const draft = requestIn(await store.get(id), "draft");
      expect(draft.votes, text).toEqual([]);
      return store.vote(draft, member("U0BEA"), "approve", seen);
    };
    expect(await votesWith(whole.replace('"digest":', '"digests":'))).toEqual({ result: "again" });
    expect(await votesWith("{")).toEqual({ result: "counted", approvals: 1 });
  });

  it("has no reason of a denial, no signature, and no evidence that can't be read", async () => {
    await using here = await testJournal();
    const { store, redis, key } = here;
    const request = await storeRequest(store, restartOf(vmTarget("a")));
    const { id, approval } = request.record;
    await store.vote(request, member("U0AMIR"), "deny", approval?.digest.slice(0, 16) ?? "");
    for (const text of garbage) {
      const broken = { denial: text, review: text, evidence: text };
      await redis.hset(key("request", id), broken);
      const { votes, delivered } = requestIn(await store.get(id), "denied");
      expect(votes).toMatchObject([{ voterId: "U0AMIR", vote: "deny" }]);
      expect([votes[0]?.reason, delivered.review, delivered.evidence]).toEqual([
        undefined,
        undefined,
        undefined,
      ]);
    }
  });

  it("tells the steps of its history that can be read", async () => {
    await using here = await testJournal();
    const request = await claimedRestart(here.store, "web-1");
    const hash = here.key("request", request.record.id);
    const history = await here.redis.hget(hash, "history");
    const broken = garbage.map((text) => `5 ${text}\n`).join("");
    await here.redis.hset(hash, "history", `${broken}${history}`);
    const steps = await here.store.history(request.record.id);
    expect(steps.map(({ state }) => state)).toEqual(["sending"]);
  });
});
