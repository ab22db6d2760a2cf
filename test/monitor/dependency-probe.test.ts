import { afterEach, beforeEach, expect, it, vi } from "vitest";
import {
  createDependencyProbe,
  type Outages,
  type Sighting,
} from "../../src/monitor/dependency-probe.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

/** What Redis hears of Slack, after all this was seen. */
async function heardOf(...seen: ("answer" | "silence")[]): Promise<readonly Sighting[]> {
  const watch = createDependencyProbe(300, async () => undefined);
  for (const what of seen) {
    watch.countCall("slack", what);
    vi.advanceTimersByTime(30);
  }
  const heard: Sighting[] = [];
  const store: Pick<Outages, "addSighting"> = {
    async addSighting(sighting) {
      if (sighting.part === "slack") heard.push(sighting);
      return undefined;
    },
  };
  await watch.report(store as Outages);
  return heard;
}

it("the first failure is told beside the last, so that an outage begins when it began", async () => {
  const [only, ...more] = await heardOf("silence", "silence", "silence");
  expect(more).toEqual([]);
  expect(only?.failedAgo).toEqual({ first: 90, last: 30 });
  expect(only?.answeredAgo).toBeUndefined();
});

it("nothing is told of what was not called", async () => {
  expect(await heardOf()).toEqual([]);
});

it("failures before an answer don't count as its beginning", async () => {
  const [only, ...more] = await heardOf("silence", "answer", "silence");
  expect(more).toEqual([]);
  expect(only).toMatchObject({ failedAgo: { first: 30, last: 30 }, answeredAgo: 60 });
});
