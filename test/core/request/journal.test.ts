import { describe, expect, it } from "vitest";
import { storedPolicyKey } from "../../../src/audit/stored-policy.ts";
import { newNonce } from "../../../src/core/request/journal.ts";
import { createPolls } from "../../../src/core/request/polls.ts";
import { pollKeyOf } from "../../../src/core/request/record.ts";
import { sweep } from "../../../src/core/perform/sweep.ts";
import { testJournal } from "../../support/with-redis.ts";
import {
  auditOf,
  called,
  claimedBy,
  claimedTwice,
  storeRequest,
  member,
  movedBy,
  requestIn,
  restartOf,
  stageOf,
  vmTarget,
} from "../asking.ts";
import { workerHere } from "../perform/worker-here.ts";

const atOnce = (name: string) => {
  const { approval: _none, ...plain } = restartOf(vmTarget(name));
  return plain;
};

const claim = {
  to: stageOf("sending"),
  why: "claimed",
  owner: "w-1",
  claim: { vmIds: [], nonce: newNonce() },
};

describe("writing a request down", () => {
  it("makes one request of 50 equal asks at once, and of a delivery that comes again", async () => {
    await using here = await testJournal();
    const ids = await Promise.all(
      Array.from({ length: 50 }, (_, n) =>
        storeRequest(here.store, {
          ...atOnce("a"),
          origin: { kind: "typed", interaction: `ask-same-${n % 5}` },
        }),
      ),
    );
    expect(new Set(ids.map(({ record }) => record.id)).size).toBe(1);
    expect(await here.store.openCount()).toBe(1);
    expect(await auditOf(here.redis, here.key("audit"))).toHaveLength(1);
  });

  it("lets a break-glass join an equal request that may run, and no draft", async () => {
    await using here = await testJournal();
    const ask = (interaction: string, more: object) =>
      storeRequest(here.store, {
        ...atOnce("a"),
        origin: { kind: "typed", interaction },
        ...more,
      });
    const { approval } = restartOf(vmTarget("a"));
    const draft = await ask("1", { approval });
    const emergency = await ask("2", { breakGlass: true });
    expect(emergency.record.id).not.toBe(draft.record.id);
    expect((await ask("3", { breakGlass: true })).record.id).toBe(emergency.record.id);
    expect((await ask("4", {})).record.id).toBe(emergency.record.id);
  });

  it("lets lists of a person and a target forget what is no longer kept, and end with it", async () => {
    await using here = await testJournal();
    const first = await storeRequest(here.store, atOnce("a"));
    const now = await here.store.now();
    const { requester, target } = first.record;
    const lists = [
      here.key("requests", "person", requester.id),
      here.key("requests", "target", target.id),
    ];
    for (const list of lists) {
      await here.redis.zadd(list, now - 91 * 86_400_000, "r-old");
      await here.redis.zadd(list, now - 89 * 86_400_000, "r-younger");
    }
    const second = await storeRequest(here.store, { ...atOnce("a"), input: { vms: ["x"] } });
    const kept = ["r-younger", first.record.id, second.record.id];
    for (const list of lists) {
      // Two requests of the same millisecond have no order.
      expect((await here.redis.zrange(list, 0, "-1")).toSorted()).toEqual(kept.toSorted());
      expect(await here.redis.pttl(list)).toBeGreaterThan(89 * 86_400_000);
    }
  });

  it("makes another one of another target, other arguments or another person", async () => {
    await using here = await testJournal();
    const base = atOnce("a");
    const all = [
      base,
      { ...atOnce("b") },
      { ...atOnce("a"), input: { vms: ["x"] } },
      { ...atOnce("a"), person: member("U0ADA") },
    ];
    const ids = await Promise.all(all.map((one) => storeRequest(here.store, one)));
    expect(new Set(ids.map(({ record }) => record.id)).size).toBe(4);
  });

  it("asked again after it was denied makes a new one", async () => {
    await using here = await testJournal();
    const first = await storeRequest(here.store, restartOf(vmTarget("a")));
    const digest = first.record.approval?.digest.slice(0, 16) ?? "";
    await here.store.vote(first, member("U0AMIR"), "deny", digest);
    const second = await storeRequest(here.store, restartOf(vmTarget("a")));
    expect(second.record.id).not.toBe(first.record.id);
    expect(second).toMatchObject({ state: "draft", votes: [] });
  });
});

describe("moving a request", () => {
  it("is done by one of 200 who try it at once, with one audit record", async () => {
    await using here = await testJournal();
    const request = await storeRequest(here.store, atOnce("a"));
    const moves = await Promise.all(
      Array.from({ length: 200 }, (_, n) =>
        here.store.move(request, { ...claim, owner: `w-${n}` }),
      ),
    );
    expect(moves.filter(({ kind }) => kind === "moved")).toHaveLength(1);
    expect(moves.filter(({ kind }) => kind === "changed")).toHaveLength(199);
    const audit = await auditOf(here.redis, here.key("audit"));
    expect(audit.filter(({ move }) => move === "sending")).toHaveLength(1);
  });

  it("leaves records that each name the request, its target and requester, and say the rest once", async () => {
    await using here = await testJournal();
    const request = await storeRequest(here.store, atOnce("a"));
    const claimed = await claimedBy("w-1", request, here.store);
    const returned = await movedBy(
      here.store.move(claimed, { to: stageOf("authorized"), why: "again" }),
    );
    await movedBy(here.store.move(returned, { ...claim, attempt: 2, why: "again" }));
    const audit = await auditOf(here.redis, here.key("audit"));
    const { id, command, target, requester } = request.record;
    for (const one of audit)
      expect(one).toMatchObject({
        request: id,
        command,
        target: { id: target.id, name: target.name },
        requester: requester.id,
      });
    expect(audit.map(({ move, team, attempt, from }) => [move, team, attempt, from])).toEqual([
      ["authorized", requester.teamId, undefined, undefined],
      ["sending", undefined, undefined, undefined],
      ["authorized", undefined, undefined, undefined],
      ["sending", undefined, 2, undefined],
    ]);
  });

  it("claims a target for one request only, until that one has ended", async () => {
    await using here = await testJournal();
    const [first, second] = await Promise.all([
      storeRequest(here.store, atOnce("a")),
      storeRequest(here.store, { ...atOnce("a"), person: member("U0ADA") }),
    ]);
    const claimed = await movedBy(here.store.move(first, claim));
    expect(await here.store.move(second, claim)).toEqual({
      kind: "locked",
      holder: first.record.id,
    });
    await here.store.move(claimed, { to: stageOf("rejected"), why: "refused" });
    expect((await here.store.move(second, claim)).kind).toBe("moved");
  });

  it("claims nothing while frozen, from the moment of the freeze on", async () => {
    await using here = await testJournal();
    const request = await storeRequest(here.store, atOnce("a"));
    await here.store.freeze({ by: "ada", reason: "storage" });
    expect(await here.store.move(request, claim)).toMatchObject({
      kind: "frozen",
      freeze: { by: "ada" },
    });
    expect(await here.store.freeze({ by: "bob", reason: "other" })).toBe(false);
    expect(await here.store.thaw({ id: "U0ADA", name: "ada" })).toMatchObject({
      kind: "thawed",
      ended: { by: "ada", reason: "storage" },
    });
    expect((await here.store.move(request, claim)).kind).toBe("moved");
  });

  it("leaves another worker's claim of the same attempt alone when its own claim was lost by Redis", async () => {
    await using here = await testJournal();
    const request = await storeRequest(here.store, atOnce("a"));
    const [lost, other] = await claimedTwice(here, request);
    expect(other).toMatchObject({ attempt: lost.attempt, revision: lost.revision });
    const answered = { to: stageOf("accepted"), why: "accepted" };
    expect(await here.store.move(lost, answered)).toEqual({ kind: "changed" });
    expect((await here.store.move(other, answered)).kind).toBe("moved");
  });

  it("goes on with a claim that was written before claims had a nonce", async () => {
    await using here = await testJournal();
    const request = await storeRequest(here.store, atOnce("a"));
    await here.store.move(request, { ...claim, attempt: 1 });
    await here.redis.hdel(here.key("request", request.record.id), "claim:1");
    const older = requestIn(await here.store.get(request.record.id), "sending");
    expect(older.nonce).toBeUndefined();
    const moved = await here.store.move(older, { to: stageOf("accepted"), why: "accepted" });
    expect(moved.kind).toBe("moved");
  });

  it("keeps the facts of its state, and none of the states before", async () => {
    await using here = await testJournal();
    const request = await storeRequest(here.store, atOnce("a"));
    const waits = { why: "waits for a replica", notBefore: 7, holds: 2 };
    const waiting = await movedBy(
      here.store.move(request, { to: stageOf("authorized", waits), why: waits.why }),
    );
    const again = () => here.store.get(request.record.id);
    expect((await again())?.stage).toEqual(stageOf("authorized", waits));
    const to = stageOf(
      "sending",
      called({ sentAt: 5, safety: { request: "r-s", snapshotId: "s" } }),
    );
    expect((await here.store.move(waiting, { ...claim, to })).kind).toBe("moved");
    expect((await again())?.stage).toEqual(to);
  });
});

describe("what a poll reads", () => {
  it("is all that waits for it, one or hundreds, and what no longer does is forgotten", async () => {
    await using here = await testJournal();
    const ids: string[] = [];
    for (const more of [1, 2, 150]) {
      const names = Array.from({ length: more }, (_, n) => `vm-${ids.length + n}`);
      const claimAnother = async (name: string) => {
        const request = await storeRequest(here.store, atOnce(name));
        ids.push(request.record.id);
        await here.store.move(request, { ...claim, claim: { vmIds: [], nonce: newNonce() } });
      };
      await Promise.all(names.map(claimAnother));
      const watched = here.key("watch", pollKeyOf({ target: vmTarget("a") }));
      await here.redis.sadd(watched, "r-gone");
      const polls = createPolls(here.redis, here.key, here.store.latest);
      const requests = await polls.waiting(watched.slice(here.key("watch", "").length));
      expect(await here.redis.sismember(watched, "r-gone")).toBe(0);
      expect(requests.map(({ record }) => record.id).toSorted()).toEqual(ids.toSorted());
    }
  });
});

it("what was given back stays watched, as it may be claimed again before this is noticed; what has ended does not", async () => {
  await using here = await testJournal();
  const polls = createPolls(here.redis, here.key, here.store.latest);
  const [back, done] = await Promise.all(
    ["a", "b"].map((name) => storeRequest(here.store, atOnce(name))),
  );
  if (!back || !done) throw new Error("not written down");
  await here.store.move(done, { to: stageOf("cancelled"), why: "cancelled" });
  const watched = here.key("watch", pollKeyOf(back.record));
  await here.redis.sadd(watched, back.record.id, done.record.id);
  expect(await polls.waiting(pollKeyOf(back.record))).toEqual([]);
  expect(await here.redis.smembers(watched)).toEqual([back.record.id]);
});

describe("a record in a state that is none", () => {
  it("is left alone: not shown, not moved", async () => {
    await using here = await testJournal();
    const request = await storeRequest(here.store, atOnce("a"));
    const { id } = request.record;
    await here.redis.hset(here.key("request", id), "state", "levitating");
    expect(await here.store.getMany([id])).toEqual([]);
  });
});

describe("the sweeper", () => {
  it("ends what nobody answered in time, and what waits under another policy", async () => {
    await using here = await workerHere();
    const { store } = here.by;
    const approval = { required: 1, expiresMs: 1, why: "", evidence: [] };
    const late = await storeRequest(store, restartOf(await here.vm("web-2"), { approval }));
    while ((await store.now()) <= (late.record.approval?.expiresAt ?? 0)) await Promise.resolve();
    const waiting = await storeRequest(store, restartOf(await here.vm("db-1")));
    await sweep(here.by);
    expect(await store.get(late.record.id)).toMatchObject({ state: "expired", final: true });
    expect(await store.get(waiting.record.id)).toMatchObject({ state: "draft", final: false });
    await here.redis.hset(storedPolicyKey(here.key), "rules", "v2");
    // While workers get the new policy one by one, a worker with the former one leaves it alone.
    here.by.policyVersion = "v0";
    await sweep(here.by);
    expect(await store.get(waiting.record.id)).toMatchObject({ state: "draft", final: false });
    here.by.policyVersion = "v2";
    await Promise.all([sweep(here.by), sweep(here.by)]);
    expect(await store.get(waiting.record.id)).toMatchObject({
      state: "cancelled",
      stage: { why: "the policy changed while this waited for approval" },
    });
    const ends = (await here.audit()).filter(
      ({ move }) => move === "cancelled" || move === "expired",
    );
    expect(ends).toHaveLength(2);
  });
});
