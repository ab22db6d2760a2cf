import { describe, expect, it } from "vitest";
import type { Message } from "../../../src/messages/message.ts";
import { lookForLateEffects } from "../../../src/requests/perform/sweep.ts";
import type { Progress } from "../../../src/requests/journal/record.ts";
import { interaction, member, restartOf } from "../asking.ts";
import { type WorkerHere, workerHere } from "./worker-here.ts";

/** With looks close together. */
async function worker(): Promise<WorkerHere> {
  const here = await workerHere();
  const { timing } = here.by.policy;
  here.by.policy = { ...here.by.policy, timing: { ...timing, stableGapMs: 20 } };
  return here;
}

/** A request on web-2 that was sent twice and is done. */
async function sentTwice(here: WorkerHere): Promise<string> {
  const id = await ended(here, { resent: 1 });
  await here.by.store.lates.later(id, 0);
  return id;
}

async function ended(here: WorkerHere, more: Partial<Progress> = {}, who = "U0OLIVIA") {
  const { store } = here.by;
  const person = member(who);
  const { approval: _none, ...submission } = restartOf(await here.vm("payments/web-2"), { person });
  const asked = await interaction(store, submission);
  const moved = await store.move(asked, {
    state: "sending",
    progress: { sentAt: await store.now(), ...more },
    why: "claimed",
  });
  if (moved.is !== "moved") throw new Error(moved.is);
  const { progress } = moved.request;
  await store.move(moved.request, { state: "accepted", progress, why: "202" });
  const accepted = await store.get(asked.record.id);
  if (!accepted) throw new Error("it is gone");
  await store.move(accepted, { state: "done", progress, why: "read RUNNING" });
  return asked.record.id;
}

/** What is told in so many looks, each as long after the one before as looks are apart. */
async function look(here: WorkerHere, times = 3): Promise<Message[]> {
  const told: Message[] = [];
  for (let n = 0; n < times; n++) {
    await lookForLateEffects(here.by, async (_request, message) => told.push(message));
    await new Promise((resolve) => setTimeout(resolve, here.by.policy.timing.stableGapMs + 5));
  }
  return told;
}

/** The service does to web-2 what nobody asks for any more. */
const moves = (here: WorkerHere) =>
  here.compute.edit.setStatus({ vm: "payments/web-2", status: "REBOOTING" });

describe("the first call of what was sent twice", () => {
  it("is told once when its target moves although nobody asked, and stands in the trail", async () => {
    await using here = await worker();
    const id = await sentTwice(here);
    expect(await look(here)).toEqual([]);
    moves(here);
    const told = await look(here);
    expect(told).toHaveLength(1);
    expect(told[0]?.text).toBe("🚨 web-2 is REBOOTING, and no request explains it.");
    expect(JSON.stringify(told)).toContain(id);
    expect(await here.audit()).toContainEqual(
      expect.objectContaining({ what: "late-effect", request: id, status: "REBOOTING" }),
    );
  });

  it("isn't looked for when something else was sent to the target since", async () => {
    await using here = await worker();
    await sentTwice(here);
    await ended(here, {}, "U0ADA");
    moves(here);
    expect(await look(here)).toEqual([]);
    expect(await here.by.store.lates.take(20, 1)).toEqual([]);
  });

  it("isn't looked for for ever, nor while the second call is under way", async () => {
    await using here = await worker();
    await sentTwice(here);
    moves(here);
    const { timing } = here.by.policy;
    here.by.policy = { ...here.by.policy, timing: { ...timing, quiesceMs: 0 } };
    expect(await look(here)).toEqual([]);
    expect(await here.by.store.lates.take(20, 1)).toEqual([]);
    here.by.policy = { ...here.by.policy, timing };
    const person = member("U0ADA");
    const open = await interaction(
      here.by.store,
      restartOf(await here.vm("payments/web-2"), { person }),
    );
    await here.by.store.lates.later(open.record.id, 0);
    expect(await look(here, 2)).toEqual([]);
    expect(await here.by.store.lates.take(20, 1)).toEqual([open.record.id]);
  });
});
