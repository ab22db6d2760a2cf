import { describe, expect, it, vi } from "vitest";
import { silentLog } from "../../src/log/log.ts";
import { clockFinding } from "../../src/operate/checks/clock.ts";
import {
  clockProblem,
  createClock,
  createSlackClock,
  createTaking,
} from "../../src/operate/clock.ts";

const hour = 3_600_000;
const noon = Date.parse("2026-11-26T12:00:00Z");

describe("a process's clock", () => {
  it("differs from Redis's by what the time of the answer can't explain", () => {
    const clock = createClock(silentLog());
    expect(clockProblem(clock)).toBeUndefined();
    // Redis told its time somewhere within nine seconds: a slow answer is no wrong clock
    clock.compare(noon, noon + 4_500, noon + 9_000);
    expect(clock.offMs()).toBe(0);
    clock.compare(noon + 1_900, noon, noon + 1_910);
    expect([clock.offMs(), clockProblem(clock)]).toEqual([1_900, undefined]);
    clock.compare(noon + 3 * hour, noon, noon + 3 * hour + 20);
    expect(clockProblem(clock)).toBe("this machine's clock is 3 h ahead of Redis's");
    clock.compare(noon - 3 * hour, noon, noon - 3 * hour + 20);
    expect(clockProblem(clock)).toBe("this machine's clock is 3 h behind Redis's");
  });

  it("tells Redis's time though it was set since it was compared", () => {
    const clock = createClock(silentLog());
    vi.useFakeTimers({ toFake: ["performance", "Date"] });
    clock.compare(noon - hour, noon, noon - hour);
    vi.advanceTimersByTime(5_000);
    vi.setSystemTime(noon + 3 * hour);
    const now = clock.now();
    vi.useRealTimers();
    expect(now).toBe(noon + 5_000);
  });

  it("is looked at by doctor, too", () => {
    expect(clockFinding(1_999).severity).toBe("well");
    expect(clockFinding(-3 * hour)).toMatchObject({
      severity: "alarm",
      text: "this machine's clock is 3 h behind Redis's",
    });
  });

  it("is told of once when it begins to differ, and once when it agrees again", () => {
    const log = { ...silentLog(), warn: vi.fn(), info: vi.fn() };
    const clock = createClock(log);
    const heard: boolean[] = [];
    clock.onChange((isOff) => heard.push(isOff));
    for (const offMs of [0, 10_000, 11_000, -10_000, 5, 0])
      clock.compare(noon + offMs, noon, noon + offMs);
    expect(heard).toEqual([true, false]);
    expect(log.warn.mock.calls).toEqual([
      ["clock.off", { offMs: 10_000, why: "this machine's clock is 10 s ahead of Redis's" }],
    ]);
    expect(log.info.mock.calls).toEqual([["clock.agrees", { offMs: 5 }]]);
  });
});

/** A worker that notes what it was told. */
function noting() {
  const told: string[] = [];
  return { told, take: () => void told.push("take"), hold: async () => void told.push("hold") };
}

describe("the difference from Slack's clock", () => {
  it("is what neither the time of the answer nor its date's whole seconds can explain", () => {
    const clock = createSlackClock();
    const date = Math.floor(noon / 1000) * 1000;
    clock.compare({ askedAt: date - 100, date, answeredAt: date + 100 });
    expect(clock.offMs()).toBe(0);
    clock.compare({ askedAt: date + 999, date, answeredAt: date + 9_000 });
    expect(clock.offMs()).toBe(0);
    clock.compare({ askedAt: date + hour, date, answeredAt: date + hour + 50 });
    expect(clock.offMs()).toBe(hour - 1_000);
    clock.compare({ askedAt: date - hour, date, answeredAt: date - hour + 50 });
    expect(clock.offMs()).toBe(-hour + 50);
    // What an answer says that has no date, or none that can be read
    clock.compare({ askedAt: date, date: NaN, answeredAt: date });
    expect(clock.offMs()).toBe(-hour + 50);
  });
});

describe("a process's workers", () => {
  it("take jobs while the clock agrees", async () => {
    const clock = createClock(silentLog());
    const taking = createTaking(clock);
    const [early, late] = [noting(), noting()];
    taking.add(early);
    clock.compare(noon + hour, noon, noon + hour);
    taking.add(late);
    expect([early.told, late.told]).toEqual([["take", "hold"], []]);
    clock.compare(noon, noon, noon);
    expect([early.told, late.told]).toEqual([["take", "hold", "take"], ["take"]]);
  });

  it("take none once the process stops, whatever the clock does, but for those that tell what ends", async () => {
    const clock = createClock(silentLog());
    const taking = createTaking(clock);
    const [requests, messages] = [noting(), noting()];
    taking.add(requests);
    taking.add(messages, { untilClosed: true });
    await taking.close();
    expect([requests.told, messages.told]).toEqual([["take", "hold"], ["take"]]);
    clock.compare(noon + hour, noon, noon + hour);
    clock.compare(noon, noon, noon);
    expect(requests.told.filter((one) => one === "take")).toHaveLength(1);
    expect(messages.told).toEqual(["take", "hold", "take"]);
  });
});
