import { describe, expect, it } from "vitest";
import { createJournal } from "../../../src/requests/journal/journal.ts";
import { testRedis } from "../../support/with-redis.ts";
import { claimedRestart, interaction, member, restartOf, vmTarget } from "../asking.ts";

async function journal() {
  const { redis, key, [Symbol.asyncDispose]: close } = await testRedis();
  return { redis, key, store: createJournal(redis, key), [Symbol.asyncDispose]: close };
}

describe("the history of a request", () => {
  it("is kept with it, each step with its time and who took it", async () => {
    await using here = await journal();
    const { store, redis, key } = here;
    const request = await interaction(store, restartOf(vmTarget("a")));
    const { id, approval } = request.record;
    await store.vote(
      request,
      member("U0AMIR"),
      "approve",
      approval?.digest.slice(0, 16) ?? "",
      [0],
    );
    const approved = await store.get(id);
    if (!approved) throw new Error("it is gone");
    const why = "“no”\n[1] \\n";
    const moved = await store.move(approved, {
      state: "cancelled",
      progress: {},
      why,
      actor: "U0OLIVIA",
    });
    if (moved.is !== "moved") throw new Error(moved.is);
    expect(await store.history(id)).toEqual([
      {
        at: approved.changedAt,
        state: "authorized",
        why: "approved by U0AMIR",
        actor: "U0AMIR",
      },
      { at: moved.at, state: "cancelled", why, actor: "U0OLIVIA" },
    ]);
    expect(await redis.exists(key("request", id, "history"))).toBe(0);
  });

  it("has the steps that a process of an older version keeps beside it, in their order", async () => {
    await using here = await journal();
    const { store, redis, key } = here;
    const claimed = await claimedRestart(store, "a");
    const { id } = claimed.record;
    const beside = key("request", id, "history");
    const [first] = await store.history(id);
    const at = first?.at ?? 0;
    await redis.rpush(
      beside,
      `${at - 5} {"state":"authorized","why":"waits"}`,
      `${at + 60_000} {"state":"unknown","why":"no clear answer","actor":"U0ADA"}`,
    );
    expect(await store.history(id)).toEqual([
      { at: at - 5, state: "authorized", why: "waits" },
      { at, state: "sending", why: "claimed" },
      { at: at + 60_000, state: "unknown", why: "no clear answer", actor: "U0ADA" },
    ]);
    await store.move(claimed, { state: "done", progress: {}, why: "read RUNNING" });
    for (const name of [key("request", id), beside])
      expect(await redis.pttl(name)).toBeGreaterThan(89 * 86_400_000);
  });
});

it("who owns a request is kept until it has ended", async () => {
  await using here = await journal();
  const claimed = await claimedRestart(here.store, "a");
  const owner = async () => here.redis.hget(here.key("request", claimed.record.id), "owner");
  expect(await owner()).toBe("w-here");
  const done = await here.store.move(claimed, { state: "done", progress: {}, why: "read RUNNING" });
  expect(done).toMatchObject({ is: "moved", request: { owner: "w-here" } });
  expect(await owner()).toBeNull();
  const [record] = (await here.redis.xrevrange(here.key("audit"), "+", "-", "COUNT", 1)) ?? [];
  expect(record?.[1].join(" ")).toContain('"worker":"w-here"');
});
