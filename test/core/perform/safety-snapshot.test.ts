import { createSnapshots } from "../../../src/fleet/inventory/snapshots.ts";
import { describe, expect, it } from "vitest";
import { advance } from "../../../src/core/perform/perform.ts";
import { callOf } from "../../../src/core/request/stage.ts";
import { restore, snapshot } from "../../support/commands.ts";
import {
  called,
  claimedRestart,
  member,
  movedBy,
  requestIn,
  restartOf,
  storeRequest,
} from "../asking.ts";
import { type WorkerHere, workerHere } from "./worker-here.ts";

/** Requests a restore of `db-1` and lets somebody approve it. */
async function approvedRestore(here: WorkerHere) {
  here.by.commands = [...here.by.commands, snapshot, restore];
  const vm = await here.vm("db-1");
  const input = { vm: vm.id, snapshot: "snap-old" };
  const approval = { required: 1, expiresMs: 3_600_000, evidence: [] };
  const asked = restartOf(vm, { command: restore, input, approval });
  const { measurement = "" } = (await here.by.compute.vms.get(vm.id)).attestation ?? {};
  const known = {
    id: "snap-old",
    name: "old",
    vmId: vm.id,
    vmName: vm.name,
    projectId: vm.projectId,
  };
  const snapshots = createSnapshots(here.redis, here.key);
  await snapshots.remember({ ...known, by: "U0OLIVIA", at: Date.now(), measurement });
  const draft = await storeRequest(here.by.store, asked);
  const { id } = draft.record;
  const seen = draft.record.approval?.digest.slice(0, 16) ?? "";
  await here.by.store.vote(draft, member("U0AMIR"), "approve", seen);
  return { id, vmId: vm.id };
}

/** Advances the restore, and then the snapshot that it waits for, if it waits for one. */
async function step(here: WorkerHere, id: string): Promise<string | undefined> {
  await advance(id, here.by);
  const request = await here.by.store.get(id);
  const awaited = request?.state === "authorized" ? request.stage.safetyRequest : undefined;
  if (awaited !== undefined) await advance(awaited, here.by);
  return awaited;
}

const sent = (here: WorkerHere) =>
  here.compute.writes().map(({ path }) => path.split("/").at(-1) ?? "");

async function safetyOf(here: WorkerHere, id: string) {
  const request = await here.by.store.get(id);
  return request && callOf(request.stage)?.safety;
}

/** Moves the clock that the worker asks ahead, as if so much time had passed. */
function later(here: WorkerHere, ms: number): void {
  const { store } = here.by;
  here.by.store = { ...store, now: async () => (await store.now()) + ms };
}

describe("the safety snapshot of a restore", () => {
  it("is the one that was just taken, and says when", async () => {
    await using here = await workerHere();
    const { id } = await approvedRestore(here);
    const first = await step(here, id);
    await step(here, id);
    expect(sent(here)).toEqual(["snapshots", "restore"]);
    const taken = requestIn(await here.by.store.get(first ?? ""), "done");
    expect(await safetyOf(here, id)).toMatchObject({
      request: first,
      at: taken.stage.call?.sentAt,
    });
  });

  it("is taken again where another request was sent between the two, so that its work isn't lost, and says what both wait for", async () => {
    await using here = await workerHere();
    const { id, vmId } = await approvedRestore(here);
    const first = await step(here, id);
    // It holds the lock of the VM until it is done.
    const other = await claimedRestart(here.by.store, "db-1");
    expect(other.record.target.id).toBe(vmId);
    const second = await step(here, id);
    expect(second).not.toBe(first);
    expect(await here.redis.get(here.key("lock", `vm:${vmId}`))).toBe(other.record.id);
    expect(sent(here)).toEqual(["snapshots"]);
    await step(here, id);
    const waiting = requestIn(await here.by.store.get(id), "authorized");
    expect(waiting.stage).toMatchObject({
      safetyRequest: second,
      waitsFor: { request: other.record.id, command: "vm restart" },
    });
    const { call } = other.stage;
    const accepted = { state: "accepted", ...called(call) } as const;
    const running = await movedBy(here.by.store.move(other, { to: accepted, why: "accepted" }));
    await here.by.store.move(running, { to: { state: "done", ...called(call) }, why: "done" });
    await advance(second ?? "", here.by);
    await step(here, id);
    expect(sent(here)).toEqual(["snapshots", "snapshots", "restore"]);
    expect((await safetyOf(here, id))?.request).toBe(second);
  });

  it("is taken again once it is a minute old, and a slow service doesn't make that endless", async () => {
    await using here = await workerHere();
    const { id } = await approvedRestore(here);
    const first = await step(here, id);
    later(here, 61_000);
    const second = await step(here, id);
    expect(second).not.toBe(first);
    expect(await here.by.store.get(second ?? "")).toMatchObject({
      record: { input: { name: `before-${id}-2` }, origin: { request: id, take: 2 } },
    });
    later(here, 61_000);
    await step(here, id);
    expect(sent(here)).toEqual(["snapshots", "snapshots", "restore"]);
    expect((await safetyOf(here, id))?.request).toBe(second);
  });
});
