import { describe, expect, it } from "vitest";
import { boardOf, createBoards, parseBoard } from "../../src/redis/board.ts";
import { createOutbox } from "../../src/redis/outbox.ts";
import { shownIn } from "../../src/redis/shown.ts";
import { dueInMs } from "../support/pending.ts";
import { garbage } from "../support/only-whole.ts";
import { testRedis } from "../support/with-redis.ts";

const place = { channelId: "C01OPS" };
const hourMs = 3600_000;

/** Boards as two processes use them, and members that have no message yet. */
async function boarding(over: Partial<Parameters<typeof createBoards>[1]> = {}) {
  const { redis, key, [Symbol.asyncDispose]: dispose } = await testRedis();
  const outbox = createOutbox(redis, key, "shared-card", (id) => key("board", id));
  const members = createOutbox(redis, key, "request", (id) => key("member", id));
  const start = () =>
    createBoards(redis, {
      outbox,
      memberKey: members.hashOf,
      openKey: (...at) => key("open", ...at),
      letter: "b",
      opensForMs: hourMs,
      keptMs: hourMs,
      ...over,
    });
  return {
    redis,
    boards: start(),
    others: start(),
    members,
    async isBorn(...ids: string[]) {
      for (const id of ids) await redis.hset(members.hashOf(id), "state", "new");
    },
    on: async (id: string) => boardOf({ marks: shownIn(await members.get(id)).marks }),
    /** All boards that there are. */
    async all() {
      const found = await redis.keys(key("board", "*"));
      const ids = found.map((one) => one.slice(key("board", "").length));
      const read = ids.map(async (id) => parseBoard(id, await outbox.get(id)));
      const boards = (await Promise.all(read)).filter((board) => board !== undefined);
      return boards.toSorted((a, b) => a.createdAt - b.createdAt);
    },
    dueInMs: (id = "", list = outbox) => dueInMs(redis, list, id),
    openKey: key("open", place.channelId, ""),
    isShown: (id = "") => outbox.remember(id, { "said:card": "1.1" }),
    [Symbol.asyncDispose]: dispose,
  };
}

describe("a board", () => {
  it("is as good as gone where nobody can read its place", async () => {
    await using at = await boarding();
    await at.isBorn("m-1");
    await at.boards.join("m-1", place);
    const [board] = await at.all();
    for (const text of garbage) {
      await at.boards.outbox.remember(board?.id ?? "", { place: text });
      expect(await at.all(), text).toEqual([]);
    }
  });

  it("is joined by all members of its place, in order, whichever process they come to", async () => {
    await using at = await boarding({ gatherMs: hourMs });
    const ids = Array.from({ length: 20 }, (_, n) => `m-${n}`);
    await at.isBorn(...ids, "elsewhere", "in-thread");
    const joined = ids.map((id, n) => (n % 2 === 0 ? at.boards : at.others).join(id, place));
    expect(await Promise.all(joined)).not.toContain(false);
    const [board, ...more] = await at.all();
    expect(more).toEqual([]);
    expect(board).toMatchObject({ place, memberIds: ids, isClosed: false });
    for (const id of ids) expect(await at.on(id)).toBe(board?.id);
    await at.boards.join("elsewhere", { channelId: "C02STATUS" });
    await at.boards.join("in-thread", { ...place, threadTs: "1.1" });
    expect(new Set((await at.all()).map(({ id }) => id)).size).toBe(3);
    // Members that join later don't bring its post forward
    expect(await at.dueInMs(board?.id)).toBeGreaterThan(hourMs / 2);
  });

  it("has a member once, and none that has its own message, or is gone", async () => {
    await using at = await boarding();
    await at.isBorn("one", "posting", "posted");
    await at.members.remember("posting", { "said:card": "posting 7" });
    await at.members.remember("posted", { "said:card": "1.1" });
    const same = [at.boards, at.others].map((boards) => boards.join("one", place));
    expect((await Promise.all(same)).filter(Boolean)).toHaveLength(1);
    for (const id of ["posting", "posted", "gone"])
      expect(await at.boards.join(id, place)).toBe(false);
    expect((await at.all()).map(({ memberIds }) => memberIds)).toEqual([["one"]]);
    expect(await at.redis.exists(at.members.hashOf("gone"))).toBe(0);
  });

  it("takes no more than it holds, and none once its time is over or it is closed", async () => {
    await using at = await boarding({ mostMembers: 2, opensForMs: 60_000 });
    await at.isBorn("1", "2", "3", "4", "5");
    for (const id of ["1", "2", "3"]) await at.boards.join(id, place);
    expect(await at.on("2")).toBe(await at.on("1"));
    expect(await at.on("3")).not.toBe(await at.on("1"));
    const third = (await at.on("3")) ?? "";
    expect(await at.boards.close(third, 2)).toBe(false);
    expect(await at.boards.close(third, 1)).toBe(true);
    await at.boards.join("4", place);
    expect(await at.on("4")).not.toBe(third);
    expect(await at.redis.pttl(at.openKey)).toBeGreaterThan(50_000);
    expect(await at.redis.pttl(at.openKey)).toBeLessThanOrEqual(60_000);
    await at.redis.pexpire(at.openKey, 0);
    await at.boards.join("5", place);
    expect(new Set(await Promise.all(["3", "4", "5"].map(at.on))).size).toBe(3);
  });

  it("is due at once for an end once it is shown; before, and for anything else, when it was due", async () => {
    await using at = await boarding({ gatherMs: hourMs });
    await at.isBorn("one");
    await at.boards.join("one", place);
    const id = (await at.on("one")) ?? "";
    const revision = async () => (await at.all())[0]?.revision ?? 0;
    const before = await revision();
    expect(await at.boards.touch(id, true)).toBe(true);
    expect(await at.dueInMs(id)).toBeGreaterThan(hourMs / 2);
    await at.isShown(id);
    expect(await at.boards.touch(id, false)).toBe(true);
    expect(await at.dueInMs(id)).toBeGreaterThan(hourMs / 2);
    expect(await at.boards.touch(id, true)).toBe(true);
    expect(await at.dueInMs(id)).toBe(0);
    expect(await revision()).toBe(before + 3);
    expect(await at.boards.touch("gone", true)).toBe(false);
    expect(await at.redis.exists(at.boards.outbox.hashOf("gone"))).toBe(0);
  });

  it("is kept as long as its members move", async () => {
    await using at = await boarding();
    await at.isBorn("one");
    await at.boards.join("one", place);
    const id = (await at.on("one")) ?? "";
    await at.redis.pexpire(at.boards.outbox.hashOf(id), hourMs / 2);
    await at.boards.touch(id, false);
    expect(await at.redis.pttl(at.boards.outbox.hashOf(id))).toBeGreaterThan(hourMs * 0.9);
  });

  it("gives a member back its own messages, and takes it no more", async () => {
    await using at = await boarding();
    await at.isBorn("one", "two");
    for (const id of ["one", "two"]) await at.boards.join(id, place);
    const id = (await at.on("one")) ?? "";
    await at.members.remember("one", { card: "C01OPS 1.1" });
    await at.boards.leave("one", "another", at.members);
    expect(await at.on("one")).toBe(id);
    await at.boards.leave("one", id, at.members);
    expect(await at.on("one")).toBeUndefined();
    expect(await at.members.get("one")).not.toHaveProperty("card");
    expect(await at.dueInMs("one", at.members)).toBe(0);
    expect(await at.boards.join("one", place)).toBe(false);
    expect(await at.on("two")).toBe(id);
  });
});
