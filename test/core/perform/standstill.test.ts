import { expect, it } from "vitest";
import { advance } from "../../../src/core/perform/perform.ts";
import { storeRequest, restartOf } from "../asking.ts";
import { workerHere } from "./worker-here.ts";

it("a worker without the current policy claims nothing, says what a request waits for, and goes on when it has it", async () => {
  await using here = await workerHere();
  const { approval: _none, ...plain } = restartOf(await here.vm("web-2"));
  const { record } = await storeRequest(here.by.store, plain);
  const behind = { ...here.by, standstill: () => "another version counts" };
  for (let n = 0; n < 3; n += 1)
    expect(await advance(record.id, behind)).toMatchObject({ kind: "wait" });
  const waiting = await here.by.store.get(record.id);
  expect(waiting).toMatchObject({
    state: "authorized",
    attempt: 0,
    stage: { why: "it waits for a worker that has the current policy" },
  });
  const history = await here.by.store.history(record.id);
  expect(history.filter(({ why }) => why.includes("current policy"))).toHaveLength(1);
  expect(here.compute.writes()).toEqual([]);
  await advance(record.id, here.by);
  expect(here.compute.writes()).toHaveLength(1);
});
