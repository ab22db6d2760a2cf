import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { chartBlock } from "../../src/charts/chart-block.ts";
import { countsOf, type Point } from "../../src/charts/chart.ts";
import { downsample, stretches, tidy } from "../../src/charts/points.ts";
import { timeTicks, valueScale } from "../../src/charts/scale.ts";
import { sparkline } from "../../src/charts/sparkline.ts";
import { altText, chartOf, shortNumber } from "../../src/charts/usage.ts";

const at = Date.parse("2026-11-20T10:00:00Z");
const one = (minutes: number): Point => ({ at: minutes, value: 1 });
const values = (some: readonly Point[]) => some.map(({ value }) => value);
const labels = (from: number, span: number) =>
  timeTicks(from, from + span).map(({ label }) => label);
const sample = (minutes: number, value: number) => ({
  timestamp: new Date(at + minutes * 60_000).toISOString(),
  value,
});

describe("a chart in words", () => {
  it("says minimum, maximum and last of each line, and the disk as a number", () => {
    const usage = {
      cpuUsage: [sample(2, 30.04), sample(0, 10), sample(1, 80.26)],
      memoryUsage: [],
      diskUsage: 8_190_000_000,
    };
    expect(altText(usage)).toBe(
      "CPU: minimum 10, maximum 80.3, last 30 at 2026-11-20 10:02 UTC. Memory: no samples. Disk: 8.19G.",
    );
    expect(altText({ cpuUsage: [], memoryUsage: [] })).toBe(
      "CPU: no samples. Memory: no samples. Disk: no value.",
    );
  });

  it("is a row of bars where nothing else can be shown", () => {
    expect(sparkline([0, 1, 2, 3, 4, 5, 6, 7])).toBe("▁▂▃▄▅▆▇█");
    expect(sparkline([5, 5, 5])).toBe("▄▄▄");
    expect(sparkline([0, Number.NaN, 7])).toBe("▁ █");
    expect(sparkline([])).toBe("");
    expect(sparkline([Number.NaN])).toBe("");
    expect(sparkline([...Array.from({ length: 300 }, () => 0), 9, 0])).toMatch(/^▁{29}█$/);
    fc.assert(
      fc.property(fc.array(fc.double()), (all) => {
        const bars = sparkline(all, 20);
        expect(Array.from(bars).length).toBeLessThanOrEqual(20);
        expect(bars).toMatch(/^[▁▂▃▄▅▆▇█ ]*$/u);
      }),
    );
  });

  it("writes numbers short, without a unit", () => {
    const written = [
      0, 0.04211, 3e-7, 1, 43.25, 999.94, 1234.4, 99_999, 123_456, 8.19e9, 2.5e15, -12.34,
    ];
    expect(written.map(shortNumber)).toEqual([
      "0",
      "0.0421",
      "3e-7",
      "1",
      "43.3",
      "999.9",
      "1,234",
      "99,999",
      "123k",
      "8.19G",
      "2.5e15",
      "-12.3",
    ]);
  });
});

describe("Slack's own chart", () => {
  it("has at most 20 moments, the same for every line, with labels of at most 20 characters", () => {
    const cpuUsage = Array.from({ length: 60 }, (_, index) => sample(index, index));
    const block = chartBlock(
      chartOf({ cpuUsage, memoryUsage: cpuUsage.slice(30) }, "n".repeat(90)),
    );
    expect(block?.title).toHaveLength(50);
    const categories = block?.chart.axis_config.categories ?? [];
    expect(categories.length).toBeGreaterThan(5);
    for (const label of categories) expect(label).toMatch(/^10:\d\d$/);
    expect(block?.chart.series.map(({ name }) => name)).toEqual(["CPU", "Memory"]);
    for (const { data } of block?.chart.series ?? [])
      expect(data.map(({ label }) => label)).toEqual(categories);
    expect(block?.chart.series[0]?.data.at(-1)?.value).toBe(58);
  });

  it("isn't there when there is nothing it could show", () => {
    expect(chartBlock(chartOf({ cpuUsage: [], memoryUsage: [] }, "a"))).toBeUndefined();
    const alone = chartBlock(chartOf({ cpuUsage: [sample(0, 5)], memoryUsage: [] }, "a"));
    expect(alone?.chart.series).toEqual([{ name: "CPU", data: [{ label: "10:00:00", value: 5 }] }]);
  });

  it("keeps Slack's limits whatever comes", () => {
    const points = fc.array(
      fc.record({ at: fc.double({ min: -9e15, max: 9e15, noNaN: false }), value: fc.double() }),
      { maxLength: 200 },
    );
    fc.assert(
      fc.property(fc.string(), fc.array(points, { maxLength: 8 }), (title, all) => {
        const series = all.map((some, index) => ({ name: `s${index}`, points: some }));
        const block = chartBlock({ kind: "lines", title, series });
        if (!block) return;
        const { categories } = block.chart.axis_config;
        expect(new Set(categories).size).toBe(categories.length);
        expect(categories.length).toBeLessThanOrEqual(20);
        for (const label of categories) expect(label.length).toBeLessThanOrEqual(20);
        expect(block.chart.series.length).toBeLessThanOrEqual(6);
        for (const { data } of block.chart.series)
          expect(data.every(({ value }) => Number.isFinite(value))).toBe(true);
      }),
    );
  });
});

describe("points", () => {
  const points = fc.array(fc.record({ at: fc.double(), value: fc.double() }), { maxLength: 300 });

  it("are put in order, and a gap stays a gap", () => {
    fc.assert(
      fc.property(points, (all) => {
        const ordered = tidy(all);
        expect(
          ordered.every((point, index) => index === 0 || point.at >= (ordered[index - 1]?.at ?? 0)),
        ).toBe(true);
        const known = stretches(ordered).flat();
        expect(known.every(({ value }) => Number.isFinite(value))).toBe(true);
        expect(known).toHaveLength(ordered.filter(({ value }) => Number.isFinite(value)).length);
      }),
    );
    expect(stretches([0, 1, 2, 9, 10].map(one)).map(({ length }) => length)).toEqual([3, 2]);
  });

  it("are thinned out without losing the lowest, the highest, the first or the last", () => {
    const finite = fc.array(fc.record({ at: fc.integer(), value: fc.integer() }), {
      minLength: 1,
      maxLength: 500,
    });
    fc.assert(
      fc.property(finite, fc.integer({ min: 2, max: 50 }), (all, most) => {
        const ordered = tidy(all);
        const kept = downsample(ordered, most);
        expect(kept.length).toBeLessThanOrEqual(Math.max(most + 3, 3));
        expect(Math.max(...values(kept))).toBe(Math.max(...values(ordered)));
        expect(Math.min(...values(kept))).toBe(Math.min(...values(ordered)));
        expect([kept[0], kept.at(-1)]).toEqual([ordered[0], ordered.at(-1)]);
      }),
    );
  });
});

describe("an axis", () => {
  it("holds all values between round numbers, zero among them", () => {
    const value = fc.double({ min: -1e300, max: 1e300, noNaN: true });
    fc.assert(
      fc.property(value, value, (a, b) => {
        const [low, high] = [Math.min(a, b), Math.max(a, b)];
        const { from, to, ticks } = valueScale(low, high);
        const slack = (to - from) * 1e-9;
        expect(
          from <= Math.min(0, low) + slack && to >= Math.max(0, high) - slack && from < to,
        ).toBe(true);
        expect(ticks.length).toBeGreaterThanOrEqual(2);
        expect(ticks.length).toBeLessThanOrEqual(8);
      }),
    );
    expect(valueScale(12, 63.6).ticks).toEqual([0, 20, 40, 60, 80]);
    expect(valueScale(0.1, 0.29).ticks).toEqual([0, 0.1, 0.2, 0.3]);
  });

  it("says the time in UTC, and the day where it begins", () => {
    const hour = 3_600_000;
    expect(labels(at, hour)).toEqual([
      "10:00",
      "10:10",
      "10:20",
      "10:30",
      "10:40",
      "10:50",
      "11:00",
    ]);
    expect(labels(at, 24 * hour)).toContain("21 Nov");
    expect(labels(at, 20_000)[0]).toBe("10:00:00");
    expect(labels(at, 900 * 24 * hour).at(-1)).toMatch(/^\d+ \w{3} \d{4}$/);
    fc.assert(
      fc.property(
        fc.double({ min: -8.6e15, max: 8.6e15, noNaN: true }),
        fc.double({ min: 0, max: 1e16, noNaN: true }),
        (from, span) => {
          expect(timeTicks(from, from + span).length).toBeLessThanOrEqual(8);
        },
      ),
    );
  });
});

describe("counts by status", () => {
  it("are sorted, the most frequent first, each with its tone", () => {
    expect(countsOf("VMs", ["ERROR", "RUNNING", "RUNNING", "FROZEN"]).counts).toEqual([
      { label: "RUNNING", count: 2, tone: "good" },
      { label: "ERROR", count: 1, tone: "bad" },
      { label: "FROZEN", count: 1, tone: "other" },
    ]);
  });
});
