import { expect, it, vi } from "vitest";
import { vmTarget } from "../core/asking.ts";
import { append } from "../audit/trail-of.ts";
import { listed, startReading } from "./reading.ts";
import { shownText } from "./shown-text.ts";

it("/gatehouse audit has a batch of requests in memory at most, however many there are", async () => {
  const target = vmTarget("web-1");
  const requests = Array.from({ length: 450 }, (_, n) => {
    const request = listed({ id: `r-${n}`, target, createdAt: n, state: "done" });
    const origin = { kind: "typed", interaction: `typed-${n}` } as const;
    return { ...request, record: { ...request.record, origin } };
  });
  await using reading = await startReading({ requests });
  const { trail, journal } = reading.context;
  const reads = vi.spyOn(journal, "getMany");
  await append(trail, 450);
  const text = shownText(await reading.reads("gatehouse audit"));
  expect(text).toContain("20 acts, newest first");
  await reading.reads("gatehouse audit somebody");
  const sizes = reads.mock.calls.map(([ids]) => ids.length);
  expect(sizes.length).toBeGreaterThan(10);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(100);
  // Those of the acts shown are read again, one by one; the 20th act is this read
  expect(sizes.filter((size) => size === 1)).toHaveLength(19);
});
