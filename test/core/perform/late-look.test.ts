import { describe, expect, it } from "vitest";
import type { Message } from "../../../src/messages/blocks.ts";
import { lateLookWork } from "../../../src/core/perform/late-look.ts";
import { commands } from "../../support/commands.ts";
import { isChange } from "../../../src/registry/define.ts";
import { called, storeRequest, member, movedBy, restartOf, stageOf } from "../asking.ts";
import { lateLookMs } from "../../../src/core/perform/step.ts";
import { dueInMs } from "../../support/pending.ts";
import { type WorkerHere, workerHere } from "./worker-here.ts";

/** Stores a stop of web-2 that had no effect by two reads after the quiet period. */
async function storeNotApplied(here: WorkerHere) {
  const { store } = here.by;
  here.by.commands = commands.filter(isChange);
  const target = await here.vm("payments/web-2");
  const { approval: _none, ...submission } = restartOf(target, { person: member("U0OLIVIA") });
  const command = here.by.commands.find(({ name }) => name === "vm stop");
  if (!command) throw new Error("no such command");
  const asked = await storeRequest(store, { ...submission, command });
  const before = await here.by.compute.vms.get(target.id);
  const facts = called({ sentAt: await store.now(), before });
  const to = { state: "sending", ...facts } as const;
  const sending = await movedBy(store.move(asked, { to, why: "claimed" }));
  const unclear = await movedBy(
    store.move(sending, { to: { ...to, state: "unclear" }, why: "no answer" }),
  );
  await store.move(unclear, { to: stageOf("not-applied", facts), why: "no effect" });
  const ageMs = lateLookMs(here.by.policy.timing);
  await here.redis.hincrby(here.requestKey(asked.record.id), "changedAt", -ageMs);
  await store.lates.later(asked.record.id, 0);
  return { id: asked.record.id, target };
}

/** Takes one late look, and returns the messages that it sends. */
async function look(here: WorkerHere, id: string): Promise<Message[]> {
  const told: Message[] = [];
  const work = lateLookWork(
    () => here.by,
    async (_request, message) => void told.push(message),
  );
  await work.handle(id, "");
  return told;
}

const stateOf = async (here: WorkerHere, id: string) => (await here.by.store.get(id))?.state;

describe("a late look at what wasn't applied", () => {
  it("says nothing where it stayed so, and looks no more", async () => {
    await using here = await workerHere();
    const { id } = await storeNotApplied(here);
    expect(await look(here, id)).toEqual([]);
    expect([await stateOf(here, id), await here.by.store.lates.depth()]).toEqual([
      "not-applied",
      0,
    ]);
  });

  it("tells once what took effect after all, in the trail too, and its card is right from then on", async () => {
    await using here = await workerHere();
    const { id } = await storeNotApplied(here);
    here.compute.edit.setStatus({ vm: "payments/web-2", status: "STOPPED" });
    const told = await look(here, id);
    expect(told.map(({ text }) => text)).toEqual([
      "⚠️ web-2 is STOPPED by now: vm stop took effect late.",
    ]);
    expect(JSON.stringify(told)).toContain(id);
    expect(await here.audit()).toContainEqual(
      expect.objectContaining({ what: "late-effect", request: id, status: "STOPPED" }),
    );
    expect(await stateOf(here, id)).toBe("done");
    expect(await look(here, id)).toEqual([]);
  });

  it.each([
    ["comes too early, as what was put off does once Redis's clock was set back", -1],
    ["is of what ended before that", 3_600_000],
  ])("is put off where it %s", async (_when, laterMs) => {
    await using here = await workerHere();
    const { id } = await storeNotApplied(here);
    const wholeMs = lateLookMs(here.by.policy.timing);
    await here.redis.hincrby(here.requestKey(id), "changedAt", wholeMs + laterMs);
    const calls = here.compute.calls().length;
    expect(await look(here, id)).toEqual([]);
    expect(here.compute.calls()).toHaveLength(calls);
    const inMs = await dueInMs(here.redis, here.by.store.lates, id);
    expect(inMs).toBeGreaterThan(wholeMs - 10_000);
    expect(inMs).toBeLessThanOrEqual(wholeMs);
  });

  it("waits while the target is under way, and while the service can't be read", async () => {
    await using here = await workerHere();
    const { id } = await storeNotApplied(here);
    here.compute.edit.setStatus({ vm: "payments/web-2", status: "REBOOTING" });
    expect(await look(here, id)).toEqual([]);
    here.compute.weather({ match: "reads", status: 503 });
    expect(await look(here, id)).toEqual([]);
    expect([await stateOf(here, id), await here.by.store.lates.depth()]).toEqual([
      "not-applied",
      1,
    ]);
  });

  it("claims nothing that a later request may have done", async () => {
    await using here = await workerHere();
    const { id, target } = await storeNotApplied(here);
    const { approval: _none, ...submission } = restartOf(target, { person: member("U0ADA") });
    const other = await storeRequest(here.by.store, submission);
    const sentAt = (await here.by.store.now()) + 1;
    await here.by.store.move(other, { to: stageOf("sending", called({ sentAt })), why: "claimed" });
    here.compute.edit.setStatus({ vm: "payments/web-2", status: "STOPPED" });
    expect(await look(here, id)).toEqual([]);
    expect([await stateOf(here, id), await here.by.store.lates.depth()]).toEqual([
      "not-applied",
      0,
    ]);
  });
});
