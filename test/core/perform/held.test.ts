import { expect, it } from "vitest";
import { advance } from "../../../src/core/perform/perform.ts";
import { storeRequest, restartOf } from "../asking.ts";
import { workerHere } from "./worker-here.ts";

it("a request whose turn has come names no longer the one that it waited for", async () => {
  await using here = await workerHere();
  const { store } = here.by;
  const { approval: _none, ...plain } = restartOf(await here.vm("web-2"));
  const request = await storeRequest(store, plain);
  const { id } = request.record;
  const behind = { ...request.stage, waitsFor: { request: "r-ended-since" } };
  await store.move(request, { to: behind, why: "waits for r-ended-since" });
  here.compute.weather({ match: "*", status: 503 });
  await advance(id, here.by);
  const stage = (await store.get(id))?.stage;
  expect(stage).toMatchObject({ state: "authorized", why: expect.any(String) as string });
  expect(stage).not.toHaveProperty("waitsFor");
});
