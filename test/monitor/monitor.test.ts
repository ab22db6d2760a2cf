import { describe, expect, it } from "vitest";
import { type Probe, createMonitor, runProbe } from "../../src/monitor/monitor.ts";

/** Sees numbers under IDs, and notes what is done in which order. `broken`: nothing can be remembered. */
function counting(seen: { now: Record<string, number>; broken?: boolean }) {
  const known = new Map<string, number>();
  const done: string[] = [];
  const probe: Probe<number, string> = {
    name: "numbers",
    records: {
      readRecords: async (ids) => new Map([...known].filter(([id]) => !ids || ids.includes(id))),
      async writeRecords(records) {
        if (seen.broken) throw new Error("killed");
        for (const [id, record] of records) known.set(id, record);
        done.push(`remembers ${[...records.keys()].join(" ")}`);
      },
    },
    async observe() {
      const now = new Map(Object.entries(seen.now));
      if (now.size === 0) return undefined;
      return {
        ids: [...now.keys()],
        compare: (before) => ({
          after: now,
          changes: [...now]
            .filter(([id, one]) => (before.get(id) ?? one) !== one)
            .map(([id, one]) => `${id} from ${before.get(id)} to ${one}`),
        }),
        remembered: async () => void done.push("is over"),
      };
    },
    reportChanges: async (changes) => void done.push(`tells ${changes.join(", ")}`),
  };
  return { probe, done };
}

describe("a probe of the monitor", () => {
  it("tells what changed before that is remembered, and remembers only what differs", async () => {
    const seen = { now: { a: 1, b: 1 } };
    const { probe, done } = counting(seen);
    await runProbe(probe);
    seen.now = { a: 2, b: 1 };
    done.length = 0;
    await runProbe(probe);
    expect(done).toEqual(["tells a from 1 to 2", "remembers a", "is over"]);
  });

  it("tells the same once more, in the same words, where its process died before that was remembered", async () => {
    const seen: Parameters<typeof counting>[0] = { now: { a: 1 } };
    const { probe, done } = counting(seen);
    await runProbe(probe);
    done.length = 0;
    Object.assign(seen, { now: { a: 2 }, broken: true });
    await expect(runProbe(probe)).rejects.toThrow("killed");
    seen.broken = false;
    await runProbe(probe);
    expect(done).toEqual(["tells a from 1 to 2", "tells a from 1 to 2", "remembers a", "is over"]);
  });

  it("does nothing while there is nothing to compare", async () => {
    const { probe, done } = counting({ now: {} });
    await runProbe(probe);
    expect(done).toEqual([]);
  });
});

describe("the monitor", () => {
  it("runs a probe with a period of its own as a schedule, and the others whenever the fleet was read", async () => {
    const own = counting({ now: { a: 1 } });
    const other = counting({ now: { b: 1 } });
    const every = { ms: 60_000, retryAfterMs: 15_000 };
    const monitor = createMonitor([{ ...own.probe, every }, other.probe]);
    expect(monitor.schedules).toMatchObject([
      { name: "monitor numbers", repeat: { every: 60_000 }, retryAfterMs: 15_000 },
    ]);
    await monitor.fleetWasRead();
    expect([own.done.length, other.done.length]).toEqual([0, 3]);
    await monitor.schedules[0]?.run();
    expect(own.done.length).toBe(3);
  });
});
