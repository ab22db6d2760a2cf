import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  altText,
  chartOf,
  countsOf,
  type LineChart,
  pointsOf,
  shortNumber,
} from "../../src/charts/chart.ts";
import { layOut, timeTicks } from "../../src/charts/draw.ts";
import { chartBlock, sparkline } from "../../src/charts/without-picture.ts";

const at = Date.parse("2026-11-20T10:00:00Z");
const pointsAt = (minutes: readonly number[], value = 1) =>
  pointsOf(minutes.map((minute) => sample(minute, value)));
const row = (values: readonly number[]) =>
  pointsOf(values.map((value, index) => sample(index, value)));
const lines = (...all: LineChart["series"][number]["points"][]): LineChart => ({
  kind: "lines",
  title: "a",
  series: all.map((points, index) => ({ name: `s${index}`, points })),
});
const labels = (from: number, span: number) =>
  timeTicks(from, from + span).map(({ label }) => label);
const anySample = fc.record({
  timestamp: fc.oneof(
    fc.date().map(String),
    fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
  ),
  value: fc.double(),
});
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
    expect(sparkline(row([0, 1, 2, 3, 4, 5, 6, 7]))).toBe("▁▂▃▄▅▆▇█");
    expect(sparkline(row([5, 5, 5]))).toBe("▄▄▄");
    expect(sparkline([])).toBe("");
    expect(sparkline(row([...Array.from({ length: 300 }, () => 0), 9, 0]))).toMatch(/^▁{29}█$/);
    fc.assert(
      fc.property(fc.array(fc.double()), (all) => {
        const points = row(all);
        const bars = sparkline(points, 20);
        expect(Array.from(bars)).toHaveLength(Math.min(20, points.length));
        expect(bars).toMatch(/^[▁▂▃▄▅▆▇█]*$/u);
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
    const points = fc.array(anySample, { maxLength: 200 }).map(pointsOf);
    fc.assert(
      fc.property(fc.string(), fc.array(points, { maxLength: 8 }), (title, all) => {
        const block = chartBlock({ ...lines(...all), title });
        if (!block) return;
        const { categories } = block.chart.axis_config;
        expect(block.title.length).toBeLessThanOrEqual(50);
        expect(new Set(categories).size).toBe(categories.length);
        expect(categories.length).toBeLessThanOrEqual(20);
        for (const label of categories) expect(label.length).toBeLessThanOrEqual(20);
        expect(block.chart.series.length).toBeLessThanOrEqual(6);
        for (const { data } of block.chart.series) {
          expect(data.map(({ label }) => label)).toEqual(categories);
          expect(data.every(({ value }) => Number.isFinite(value))).toBe(true);
        }
      }),
    );
  });

  it("tells moments apart however near or far they are", () => {
    const labelsOver = (stepMs: number) =>
      chartBlock(
        lines(Array.from({ length: 40 }, (_, index) => ({ at: at + index * stepMs, value: 1 }))),
      )?.chart.axis_config.categories;
    expect(labelsOver(100)).toEqual(["10:00:00", "10:00:01", "10:00:03"]);
    expect(labelsOver(60_000)?.slice(0, 2)).toEqual(["10:00", "10:02"]);
    expect(labelsOver(3_600_000)?.[0]).toBe("11-20 10:58");
    expect(labelsOver(30 * 86_400_000)?.[0]).toBe("2026-12-19");
  });
});

describe("points", () => {
  it("are put in order, without what can't be read", () => {
    fc.assert(
      fc.property(fc.array(anySample, { maxLength: 300 }), (all) => {
        const points = pointsOf(all);
        expect(points.map((point) => point.at)).toEqual(
          points.map((point) => point.at).toSorted((a, b) => a - b),
        );
        const known = all.filter(
          ({ timestamp, value }) => !Number.isNaN(Date.parse(timestamp)) && !Number.isNaN(value),
        );
        expect(points).toHaveLength(known.length);
        expect(points.every(({ value }) => Math.abs(value) <= 1e300)).toBe(true);
      }),
    );
  });

  it("are joined but over a pause of more than three of the usual ones", () => {
    const stretchesOf = (minutes: readonly number[]) => {
      const picture = layOut(lines(pointsAt(minutes)));
      const line = picture.getDatasetMeta(0).dataset as unknown as {
        segments: { start: number; end: number }[];
      };
      const lengths = line.segments.map(({ start, end }) => end - start + 1);
      picture.destroy();
      return lengths;
    };
    expect(stretchesOf([0, 1, 2, 9, 10])).toEqual([3, 2]);
    expect(stretchesOf([0, 1, 2, 5, 6])).toEqual([5]);
    expect(stretchesOf([0, 5, 10, 15, 31, 50])).toEqual([4, 1, 1]);
    expect(stretchesOf([0, 0, 0, 9])).toEqual([4]);
    expect(stretchesOf([7])).toEqual([1]);
  });
});

describe("an axis", () => {
  const ticksOf = (...all: number[][]) => {
    const picture = layOut(lines(...all.map(row)));
    const axes = Object.entries(picture.scales).filter(([id]) => /^y\d*$/.test(id));
    const found = axes.map(([, { ticks }]) => ticks.map(({ value }) => value));
    picture.destroy();
    return found;
  };

  it("holds all values between round numbers, zero among them", () => {
    const value = fc.double({ min: -1e300, max: 1e300, noNaN: true });
    fc.assert(
      fc.property(fc.array(value, { minLength: 1, maxLength: 9 }), (all) => {
        const ticks = ticksOf(all)[0] ?? [];
        const [from = 0, to = 0] = [ticks[0], ticks.at(-1)];
        const slack = (to - from) * 1e-9;
        expect(from).toBeLessThanOrEqual(Math.min(0, ...all) + slack);
        expect(to).toBeGreaterThanOrEqual(Math.max(0, ...all) - slack);
        expect(from).toBeLessThan(to);
        expect(ticks.length).toBeGreaterThanOrEqual(2);
        expect(ticks.length).toBeLessThanOrEqual(8);
      }),
      // Each is a whole picture
      { numRuns: 40 },
    );
    expect(ticksOf([12, 63.6])).toEqual([[0, 20, 40, 60, 80]]);
    expect(ticksOf([0.1, 0.29])).toEqual([[0, 0.1, 0.2, 0.3]]);
    expect(ticksOf([0, 0])[0]).toContain(0);
  });

  it("is one for lines of like size, and one each for others", () => {
    expect(ticksOf([1, 10], [2, 60])).toHaveLength(1);
    expect(ticksOf([1, 10], [], [2, 90])).toHaveLength(2);
    expect(ticksOf([0, 0], [2, 90])).toHaveLength(1);
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
  it("are sorted, the most frequent first", () => {
    expect(countsOf("VMs", ["ERROR", "RUNNING", "RUNNING", "FROZEN"]).counts).toEqual([
      { label: "RUNNING", count: 2 },
      { label: "ERROR", count: 1 },
      { label: "FROZEN", count: 1 },
    ]);
  });
});
