import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createMarkAges } from "../../../src/core/deliver/mark-ages.ts";

const callMs = 10_000;

describe("the age of a mark", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
  afterEach(() => void vi.useRealTimers());

  it("is what Redis says, where its clock goes as ours does", async () => {
    const ages = createMarkAges(async () => 1_000_000 + performance.now(), callMs);
    const now = await ages.now();
    expect(await ages.leftOf(now - 4000)).toBe(6000);
    expect(await ages.leftOf(now - callMs)).toBe(0);
    expect(await ages.leftOf(now + 3_600_000)).toBe(0);
  });

  it.each([600_000, -600_000])("is nobody's to tell after a step of %i ms", async (step) => {
    let off = 1_000_000;
    const ages = createMarkAges(async () => off + performance.now(), callMs);
    const marked = await ages.now();
    off += step;
    expect(await ages.leftOf(marked)).toBe(callMs);
  });
});
