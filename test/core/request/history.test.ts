import { describe, expect, it } from "vitest";
import { testJournal } from "../../support/with-redis.ts";
import {
  claimedRestart,
  storeRequest,
  member,
  movedBy,
  requestIn,
  restartOf,
  stageOf,
  vmTarget,
} from "../asking.ts";

describe("the history of a request", () => {
  it("is kept with it, each step with its time and who took it", async () => {
    await using here = await testJournal();
    const { store } = here;
    const request = await storeRequest(store, restartOf(vmTarget("a")));
    const { id, approval } = request.record;
    await store.vote(
      request,
      member("U0AMIR"),
      "approve",
      approval?.digest.slice(0, 16) ?? "",
      [0],
    );
    const approved = requestIn(await store.get(id), "authorized");
    const why = "“no”\n[1] \\n";
    const to = stageOf("cancelled", { why });
    const moved = await movedBy(store.move(approved, { to, why, actor: "U0OLIVIA" }));
    expect(await store.history(id)).toEqual([
      {
        at: approved.changedAt,
        state: "authorized",
        why: "approved by U0AMIR",
        actor: "U0AMIR",
      },
      { at: moved.changedAt, state: "cancelled", why, actor: "U0OLIVIA" },
    ]);
  });
});

it("the owner of a request is kept until it has ended", async () => {
  await using here = await testJournal();
  const claimed = await claimedRestart(here.store, "a");
  const owner = async () => here.redis.hget(here.key("request", claimed.record.id), "owner");
  expect(await owner()).toBe("w-here");
  const done = await here.store.move(claimed, { to: stageOf("done"), why: "read RUNNING" });
  expect(done).toMatchObject({ kind: "moved", request: { owner: "w-here" } });
  expect(await owner()).toBe("");
  const [record] = (await here.redis.xrevrange(here.key("audit"), "+", "-", "COUNT", 1)) ?? [];
  expect(record?.[1].join(" ")).toContain('"worker":"w-here"');
});
