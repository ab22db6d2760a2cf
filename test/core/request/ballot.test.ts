import { describe, expect, it, onTestFinished } from "vitest";
import type { VoteOutcome } from "../../../src/core/permit/votes.ts";
import { connectRedis, type RedisClient } from "../../../src/redis/redis.ts";
import { silentLog } from "../../../src/log/log.ts";
import { createJournal, type Journal, newNonce } from "../../../src/core/request/journal.ts";
import { testRedis } from "../../support/with-redis.ts";
import {
  auditOf,
  storeRequest,
  member,
  requestIn,
  restartOf,
  stageOf,
  vmTarget,
} from "../asking.ts";

/** Opens one journal over several connections, as gateways in several processes do. */
async function openJournals(connections: number) {
  const first = await testRedis();
  const clients: RedisClient[] = [first.redis];
  for (let n = 1; n < connections; n += 1)
    clients.push(await connectRedis(first.url, "commands", silentLog()));
  onTestFinished(() => {
    for (const client of clients) client.disconnect();
  });
  return {
    key: first.key,
    client: first.redis,
    stores: clients.map((client) => createJournal(client, first.key)) as [Journal, ...Journal[]],
  };
}

const atOnce = <T, R>(all: readonly T[], act: (one: T, n: number) => Promise<R>) =>
  Promise.all(all.map(act));

const numbers = (length: number) => Array.from({ length }, (_, n) => n);

const fingerprintOf = (request: { record: { approval?: { digest: string } } }) =>
  request.record.approval?.digest.slice(0, 16) ?? "";

describe("votes on many requests from many connections at once", () => {
  it("move each request exactly once, whoever clicks how often", async () => {
    const { stores, client, key } = await openJournals(4);
    const requests = await atOnce(numbers(50), (n) =>
      storeRequest(
        stores[0],
        restartOf(vmTarget(`web-${n}`), {
          approval: { required: 2, expiresMs: 60_000, evidence: [] },
        }),
      ),
    );
    const voters = ["U0AMIR", "U0ADA", "U0BEA", "U0CARL", "U0OLIVIA"].map((id) => member(id));
    const outcomes = new Map<string, VoteOutcome[]>(requests.map(({ record }) => [record.id, []]));
    const click = async (request: (typeof requests)[number], n: number, times: number) => {
      const voter = voters[(times + n) % voters.length] ?? member("U0AMIR");
      const store = stores[times % stores.length] ?? stores[0];
      const seen = times === 10 ? "0123456789abcdef" : fingerprintOf(request);
      let outcome = await store.vote(request, voter, "approve", seen);
      while (outcome.result === "again") {
        const now = await store.get(request.record.id);
        outcome = await store.vote(now ?? request, voter, "approve", seen);
      }
      outcomes.get(request.record.id)?.push(outcome);
    };
    await atOnce(requests, (request, n) =>
      Promise.all(numbers(11).map((times) => click(request, n, times))),
    );
    for (const request of requests) {
      const all = outcomes.get(request.record.id) ?? [];
      expect(all.filter(({ result: kind }) => kind === "authorized")).toHaveLength(1);
      expect(all.filter(({ result: kind }) => kind === "counted")).toHaveLength(1);
      expect(
        all.filter((one) => one.result === "refused" && one.why === "own").length,
      ).toBeGreaterThanOrEqual(2);
      const after = await stores[0].get(request.record.id);
      expect(after).toMatchObject({ state: "authorized", final: false });
      expect(after?.votes).toHaveLength(2);
      expect(after?.votes.map(({ voterId }) => voterId)).not.toContain("U0OLIVIA");
    }
    const audit = await auditOf(client, key("audit"));
    expect(audit.filter(({ vote }) => vote === "approve")).toHaveLength(100);
    const histories = await Promise.all(requests.map(({ record }) => stores[0].history(record.id)));
    expect(
      histories.every((steps) => steps.filter(({ state }) => state === "authorized").length === 1),
    ).toBe(true);
  });

  it("end denied in every race between approve and deny", async () => {
    const { stores } = await openJournals(3);
    const [store, ...others] = stores;
    const requests = await atOnce(numbers(50), (n) =>
      storeRequest(store, restartOf(vmTarget(`race-${n}`))),
    );
    const ends = await atOnce(requests, async (request, n) => {
      const approve = () =>
        (others[0] ?? store).vote(request, member("U0AMIR"), "approve", fingerprintOf(request));
      const deny = () =>
        (others[1] ?? store).vote(request, member("U0ADA"), "deny", fingerprintOf(request));
      const both = n % 2 === 0 ? [approve(), deny()] : [deny(), approve()];
      const said = await Promise.all(both);
      expect(said.filter(({ result: kind }) => kind === "denied")).toHaveLength(1);
      return store.get(request.record.id);
    });
    expect(ends.filter((end) => end?.state === "denied" && end.final)).toHaveLength(50);
    expect((await store.openIds()).length).toBe(0);
  });
});

describe("an approval that was judged beside others", () => {
  it("is judged again when somebody else approved meanwhile, in every race for one place", async () => {
    const { stores } = await openJournals(2);
    const [store, other = store] = stores;
    // Either of them may approve for the same need. A third person's approval is missing anyway.
    const approval = { required: 2, expiresMs: 60_000, evidence: [] };
    const requests = await atOnce(numbers(50), (n) =>
      storeRequest(store, restartOf(vmTarget(`place-${n}`), { approval })),
    );
    const ends = await atOnce(requests, async (request) => {
      const said = await Promise.all([
        store.vote(request, member("U0AMIR"), "approve", fingerprintOf(request), [0]),
        other.vote(request, member("U0ADA"), "approve", fingerprintOf(request), [0]),
      ]);
      expect(said.map(({ result: kind }) => kind).toSorted()).toEqual(["again", "counted"]);
      return store.get(request.record.id);
    });
    expect(ends.filter((end) => end?.state === "draft" && end.votes.length === 1)).toHaveLength(50);
    expect(ends[0]?.votes).toMatchObject([{ vote: "approve", meets: [0] }]);
  });

  it("counts for a no whatever was approved meanwhile", async () => {
    const { stores } = await openJournals(1);
    const [store] = stores;
    const approval = { required: 2, expiresMs: 60_000, evidence: [] };
    const request = await storeRequest(store, restartOf(vmTarget("no"), { approval }));
    await store.vote(request, member("U0AMIR"), "approve", fingerprintOf(request));
    expect(await store.vote(request, member("U0ADA"), "deny", fingerprintOf(request))).toEqual({
      result: "denied",
    });
  });
});

describe("one vote", () => {
  it("never counts when it is the requester's own, for or against", async () => {
    const { stores } = await openJournals(1);
    const request = await storeRequest(stores[0], restartOf(vmTarget("own")));
    for (const vote of ["approve", "deny"] as const) {
      expect(
        await stores[0].vote(request, member("U0OLIVIA"), vote, fingerprintOf(request)),
      ).toEqual({
        result: "refused",
        why: "own",
      });
    }
    expect(await stores[0].get(request.record.id)).toMatchObject({ state: "draft", votes: [] });
  });

  it("counts once for each person, but an approval may still be turned into a no", async () => {
    const { stores } = await openJournals(1);
    const [store] = stores;
    const request = await storeRequest(
      store,
      restartOf(vmTarget("twice"), {
        approval: { required: 2, expiresMs: 60_000, evidence: [] },
      }),
    );
    const amir = member("U0AMIR");
    expect(await store.vote(request, amir, "approve", fingerprintOf(request))).toEqual({
      result: "counted",
      approvals: 1,
    });
    expect(await store.vote(request, amir, "approve", fingerprintOf(request))).toEqual({
      result: "refused",
      why: "twice",
    });
    expect(await store.vote(request, amir, "deny", fingerprintOf(request))).toEqual({
      result: "denied",
    });
    expect(await store.vote(request, member("U0ADA"), "approve", fingerprintOf(request))).toEqual({
      result: "refused",
      why: "over",
    });
    expect((await store.get(request.record.id))?.votes).toMatchObject([
      { voterId: "U0AMIR", vote: "deny" },
    ]);
  });

  it("doesn't count on another digest, or on too few digits of it", async () => {
    const { stores } = await openJournals(1);
    const request = await storeRequest(stores[0], restartOf(vmTarget("digest")));
    const other = await storeRequest(stores[0], restartOf(vmTarget("other")));
    const own = fingerprintOf(request);
    const flipped = `${own.slice(0, 15)}${own.endsWith("0") ? "1" : "0"}`;
    for (const seen of [
      "",
      own.slice(0, 15),
      flipped,
      own.toUpperCase(),
      fingerprintOf(other),
      `${own}00`,
      "%".repeat(16),
    ]) {
      if (seen === own) continue;
      expect(await stores[0].vote(request, member("U0AMIR"), "approve", seen)).toEqual({
        result: "refused",
        why: "unknown",
      });
    }
    expect((await stores[0].get(request.record.id))?.votes).toEqual([]);
  });

  it("is too late once Redis' time has passed the end, and never revives the request", async () => {
    const { stores } = await openJournals(1);
    const [store] = stores;
    const request = await storeRequest(
      store,
      restartOf(vmTarget("late"), {
        approval: { required: 1, expiresMs: 5, evidence: [] },
      }),
    );
    while ((await store.now()) <= (request.record.approval?.expiresAt ?? 0))
      await Promise.resolve();
    expect(await store.vote(request, member("U0AMIR"), "approve", fingerprintOf(request))).toEqual({
      result: "refused",
      why: "expired",
    });
    expect((await store.get(request.record.id))?.state).toBe("draft");
  });

  it("still counts as a no once the request is authorized, as long as it isn't claimed", async () => {
    const { stores, client, key } = await openJournals(1);
    const [store] = stores;
    const request = await storeRequest(store, restartOf(vmTarget("stop")));
    expect(
      (await store.vote(request, member("U0AMIR"), "approve", fingerprintOf(request))).result,
    ).toBe("authorized");
    const authorized = requestIn(await store.get(request.record.id), "authorized");
    expect(
      (await store.vote(request, member("U0ADA"), "deny", fingerprintOf(request))).result,
    ).toBe("denied");
    const claim = await store.move(authorized, {
      to: stageOf("sending"),
      why: "claimed",
      claim: { vmIds: [], nonce: newNonce() },
    });
    expect(claim.kind).toBe("changed");
    expect(await client.get(key("lock", `vm:${request.record.target.id}`))).toBeNull();
  });

  it("comes too late after the claim, for and against", async () => {
    const { stores } = await openJournals(1);
    const [store] = stores;
    const request = await storeRequest(store, restartOf(vmTarget("claimed")));
    await store.vote(request, member("U0AMIR"), "approve", fingerprintOf(request));
    const authorized = requestIn(await store.get(request.record.id), "authorized");
    const claim = {
      to: stageOf("sending"),
      why: "claimed",
      owner: "w-1",
      claim: { vmIds: [], nonce: newNonce() },
    };
    expect((await store.move(authorized, claim)).kind).toBe("moved");
    for (const vote of ["approve", "deny"] as const) {
      expect(await store.vote(request, member("U0ADA"), vote, fingerprintOf(request))).toEqual({
        result: "refused",
        why: "over",
      });
    }
    expect((await store.get(request.record.id))?.state).toBe("sending");
  });

  it("has nothing to count for on a request without approvals", async () => {
    const { stores } = await openJournals(1);
    const { approval: _none, ...plain } = restartOf(vmTarget("plain"));
    const request = await storeRequest(stores[0], plain);
    expect(request.state).toBe("authorized");
    expect(await stores[0].vote(request, member("U0AMIR"), "deny", "0".repeat(16))).toEqual({
      result: "refused",
      why: "unknown",
    });
  });

  it("is forgotten by no restart of Redis: a flushed script cache loads it again", async () => {
    const { stores, client } = await openJournals(1);
    const request = await storeRequest(stores[0], restartOf(vmTarget("noscript")));
    await client.script("FLUSH");
    expect(
      (await stores[0].vote(request, member("U0AMIR"), "approve", fingerprintOf(request))).result,
    ).toBe("authorized");
  });
});
