import { describe, expect, it } from "vitest";
import { resize } from "../../../src/commands/vm/resize.ts";
import { restart } from "../../../src/commands/vm/restart.ts";
import type { RequestRecord } from "../../../src/core/request/record.ts";
import type { Stage } from "../../../src/core/request/stage.ts";
import type { StoredRequest } from "../../../src/core/request/stored-request.ts";
import {
  findTellingRequest,
  resultWithinMs,
} from "../../../src/features/attest/telling-request.ts";
import { type Rest, called, stageOf, storedIn, vmTarget } from "../../core/asking.ts";

const now = 1_763_600_000_000;
const record = {
  id: "r-1",
  command: "vm resize",
  target: vmTarget("web-2"),
  channelId: "C01OPS",
  origin: { kind: "typed" },
} as unknown as RequestRecord;
const done = stageOf("done", called({ sentAt: now - 5_000 }));

/** Whether the result of this request will tell that its VM's measurement changed. */
async function tells(stage: Stage, over: Partial<RequestRecord> = {}, rest: Partial<Rest> = {}) {
  const request = storedIn(stage, { record: { ...record, ...over }, changedAt: now, ...rest });
  const store = {
    recentIds: async () => [record.id],
    getMany: async (): Promise<StoredRequest[]> => [request],
    now: async () => now,
  };
  const find = findTellingRequest({ store, changes: [resize, restart] });
  return (await find({ id: "vm-payments-web-2" })) !== undefined;
}

describe("the request whose result tells a failure", () => {
  it("is one that can change the measurement, under way or just done", async () => {
    expect(await tells(done)).toBe(true);
    expect(await tells(stageOf("accepted", called({ sentAt: now })))).toBe(true);
  });

  it("is none whose result was told long ago, that wasn't sent, or that did nothing", async () => {
    expect(await tells(done, {}, { changedAt: now - resultWithinMs })).toBe(false);
    expect(await tells(stageOf("authorized"))).toBe(false);
    expect(await tells(stageOf("done", { already: true }))).toBe(false);
    expect(await tells(stageOf("failed", called({ sentAt: now })))).toBe(false);
  });

  it("is none that can't change the measurement", async () => {
    expect(await tells(done, { command: "vm restart" })).toBe(false);
  });

  it("is none whose result a channel doesn't show", async () => {
    expect(await tells(done, { channelId: "D0OLIVIA" })).toBe(false);
    const inRollout = {
      kind: "rollout",
      rollout: "ro-1",
      target: 0,
    } as unknown as RequestRecord["origin"];
    expect(await tells(done, { origin: inRollout })).toBe(false);
    const delivered = { marks: {}, closedBy: "is_archived" };
    expect(await tells(done, {}, { delivered })).toBe(false);
  });

  it("is none while Redis can't say", async () => {
    const lost = () => Promise.reject(new Error("gone"));
    const store = { recentIds: lost, getMany: lost, now: lost };
    const find = findTellingRequest({ store, changes: [resize] });
    expect(await find({ id: "vm-payments-web-2" })).toBeUndefined();
  });
});
