import { setImmediate } from "node:timers/promises";
import { afterAll, describe, expect, it } from "vitest";
import { chartOf, countsOf, type LineChart, type Sample } from "../../src/charts/chart.ts";
import { closeCharts, createCharts, renderChart } from "../../src/charts/charts.ts";
import { colorOf, palette } from "../../src/charts/look.ts";
import { decode } from "./decode.ts";

const end = Date.parse("2026-11-20T21:30:00Z");
const minute = 60_000;

function samples(count: number, value: (index: number) => number, stepMs = minute): Sample[] {
  return Array.from({ length: count }, (_, index) => ({
    timestamp: new Date(end - (count - 1 - index) * stepMs).toISOString(),
    value: value(index),
  }));
}

const hour = {
  cpuUsage: samples(60, (index) => 40 + 20 * Math.sin(index / 8)),
  memoryUsage: samples(60, (index) => 60 + index / 10),
  diskUsage: 43.2,
};

const empty = (title: string): LineChart => ({ kind: "lines", title, series: [] });

/** A thread of our own making. */
function thread(source: string): URL {
  const code = `import { parentPort } from "node:worker_threads";\n${source}`;
  return new URL(`data:text/javascript,${encodeURIComponent(code)}`);
}

const [cpuColor, memoryColor] = palette.lines;

afterAll(() => closeCharts());

describe("a chart of metrics", () => {
  it("is one PNG with both lines, title, subtitle, legend, axes and last values", async () => {
    const picture = await decode(await renderChart(chartOf(hour, "web-1", "1h")));
    expect([picture.width, picture.height]).toEqual([1200, 800]);
    expect(picture.count(cpuColor)).toBeGreaterThan(2000);
    expect(picture.count(memoryColor)).toBeGreaterThan(2000);
    const title = picture.ink(40, 30, 300, 50);
    const subtitle = picture.ink(40, 94, 600, 40);
    const legend = picture.ink(40, 156, 400, 50);
    const values = picture.ink(0, 220, 104, 500);
    const times = picture.ink(140, 736, 1000, 50);
    const last = picture.ink(1046, 220, 154, 500);
    for (const text of [title, subtitle, legend, values, times, last])
      expect(text).toBeGreaterThan(300);
  });

  it("brings its own font, so that text is drawn on a machine without any", async () => {
    const named = await decode(await renderChart({ kind: "lines", title: "MMMM", series: [] }));
    const other = await decode(await renderChart({ kind: "lines", title: "iiii", series: [] }));
    const [wide, narrow] = [named.ink(40, 30, 700, 50), other.ink(40, 30, 700, 50)];
    expect(narrow).toBeGreaterThan(100);
    expect(wide).toBeGreaterThan(2 * narrow);
  });

  it("leaves gaps where samples are missing or are no numbers", async () => {
    const whole = { ...hour, memoryUsage: [], cpuUsage: samples(60, () => 50) };
    const holed = {
      ...whole,
      cpuUsage: samples(60, (index) => (index % 30 > 10 ? Number.NaN : 50)),
    };
    const late = {
      ...whole,
      cpuUsage: whole.cpuUsage.filter((_, index) => index < 20 || index > 40),
    };
    const [all, holes, pause] = await Promise.all(
      [whole, holed, late].map(async (usage) => decode(await renderChart(chartOf(usage, "gaps")))),
    );
    expect(holes?.count(cpuColor)).toBeLessThan((all?.count(cpuColor) ?? 0) * 0.65);
    expect(pause?.count(cpuColor)).toBeLessThan((all?.count(cpuColor) ?? 0) * 0.85);
  });

  it("shows a sample between two gaps as a dot", async () => {
    const apart = samples(60, () => 50).filter((_, index) => index < 20 || index > 40);
    const alone = samples(60, () => 50).filter(
      (_, index) => index % 60 < 20 || index > 40 || index === 30,
    );
    const [without, dotted] = await Promise.all(
      [apart, alone].map(async (cpuUsage) =>
        decode(await renderChart(chartOf({ cpuUsage, memoryUsage: [] }, "dot"))),
      ),
    );
    const dot = (dotted?.count(cpuColor) ?? 0) - (without?.count(cpuColor) ?? 0);
    expect(dot).toBeGreaterThan(10);
    expect(dot).toBeLessThan(200);
  });

  it("survives nothing, one sample, equal values, huge values and times that can't be read", async () => {
    const strange: LineChart[] = [
      chartOf({ cpuUsage: [], memoryUsage: [] }, "nothing"),
      chartOf({ cpuUsage: samples(1, () => 12), memoryUsage: [] }, "one"),
      chartOf({ cpuUsage: samples(9, () => 0), memoryUsage: samples(9, () => -1) }, "flat"),
      chartOf(
        { cpuUsage: samples(9, (i) => (i - 4) * 4e307), memoryUsage: samples(3, () => 5e-324) },
        "huge",
      ),
      chartOf(
        { cpuUsage: samples(9, () => Infinity), memoryUsage: samples(9, () => Number.NaN) },
        "none",
      ),
      chartOf({ cpuUsage: [{ timestamp: "yesterday", value: 1 }], memoryUsage: [] }, "when"),
      {
        kind: "lines",
        title: "",
        series: [
          {
            name: "x".repeat(400),
            points: [
              { at: -8.6e15, value: 1 },
              { at: 8.6e15, value: 2 },
            ],
          },
        ],
      },
      {
        kind: "lines",
        title: "名前 🚀 " + "y".repeat(5000),
        series: hour.cpuUsage.map(({ value }) => ({ name: "s", points: [{ at: end, value }] })),
      },
    ];
    for (const chart of strange) {
      const picture = await decode(await renderChart(chart));
      expect([picture.width, picture.ink() > 500]).toEqual([1200, true]);
    }
  });

  it("takes samples in any order", async () => {
    const shuffled = {
      ...hour,
      cpuUsage: hour.cpuUsage.toSorted((a, b) => (a.value < b.value ? -1 : 1)),
    };
    const [one, two] = await Promise.all(
      [hour, shuffled].map((usage) => renderChart(chartOf(usage, "a"))),
    );
    expect(one?.equals(two ?? Buffer.alloc(0))).toBe(true);
  });

  it("shows the spike among 10,000 samples", async () => {
    const quiet = { cpuUsage: samples(10_000, (i) => 10 + (i % 7)), memoryUsage: [] };
    const spiked = {
      cpuUsage: samples(10_000, (i) => (i === 5003 ? 95 : 10 + (i % 7))),
      memoryUsage: [],
    };
    const [flat, spike] = await Promise.all(
      [quiet, spiked].map(async (usage) => decode(await renderChart(chartOf(usage, "spike")))),
    );
    // the middle of the plot, above the noise
    expect(spike?.count(cpuColor)).toBeGreaterThan(0);
    expect(spike?.ink(560, 290, 24, 100)).toBeGreaterThan(100);
    expect(flat?.ink(560, 290, 24, 30)).toBeLessThan(100);
  });

  it("gives lines of very different size a panel each", async () => {
    const usage = {
      cpuUsage: samples(60, (i) => i),
      memoryUsage: samples(60, (i) => 8e9 + i * 1e7),
    };
    const picture = await decode(await renderChart(chartOf(usage, "web-1")));
    // on one axis the CPU would lie on the floor
    expect(picture.ink(700, 200, 300, 180)).toBeGreaterThan(1500);
  });
});

describe("a picture of counts", () => {
  it("shows each kind in its color, the rare ones too", async () => {
    const statuses = [
      ...Array.from({ length: 5000 }, () => "RUNNING"),
      "ERROR",
      "STOPPED",
      "PAUSED",
    ];
    const picture = await decode(await renderChart(countsOf("VMs", statuses)));
    expect(picture.width).toBe(1200);
    expect(picture.height).toBeLessThan(400);
    for (const status of ["RUNNING", "ERROR", "STOPPED", "PAUSED"])
      expect(picture.count(colorOf(status))).toBeGreaterThan(500);
  });

  it("survives none, and too many kinds", async () => {
    for (const statuses of [
      [],
      Array.from({ length: 60 }, (_, index) => `STATE-${"x".repeat(index)}`),
    ]) {
      const picture = await decode(await renderChart(countsOf("VMs", statuses)));
      expect(picture.ink()).toBeGreaterThan(500);
      expect(picture.height).toBeLessThan(900);
    }
  });
});

describe("the thread that draws", () => {
  it("draws off the event loop", async () => {
    const drawn = { all: false };
    const drawing = Promise.all(
      Array.from({ length: 8 }, () => renderChart(chartOf(hour, "web-1"))),
    ).finally(() => {
      drawn.all = true;
    });
    let turns = 0;
    while (!drawn.all) {
      await setImmediate();
      turns += 1;
    }
    await drawing;
    // eight pictures are 150 ms of work: drawn in here they would leave a turn or two each
    expect(turns).toBeGreaterThan(200);
  });

  it("starts anew after a crash: one picture is lost, not the next", async () => {
    const worker = thread(
      `parentPort.on("message", (chart) => chart.title === "crash" ? process.exit(3) : parentPort.postMessage(Buffer.from(chart.title), []))`,
    );
    const charts = createCharts({ worker });
    const [first, crashed, next] = await Promise.allSettled(
      ["a", "crash", "b"].map((title) => charts.renderChart(empty(title))),
    );
    expect(first).toMatchObject({ status: "fulfilled", value: Buffer.from("a") });
    expect(crashed).toMatchObject({
      status: "rejected",
      reason: { message: "The chart can't be drawn: exit 3" },
    });
    expect(next).toMatchObject({ status: "fulfilled", value: Buffer.from("b") });
    await charts.close();
  });

  it("loses no more than the picture that can't be drawn", async () => {
    const unknown = { kind: "lines", title: "a", series: [{ name: "b" }] } as unknown as LineChart;
    const [bad, good] = await Promise.allSettled([renderChart(unknown), renderChart(empty("a"))]);
    expect(bad).toMatchObject({ status: "rejected" });
    expect(good).toMatchObject({ status: "fulfilled" });
  });

  it("ends one that hangs, lets only so many wait, and begins anew when closed", async () => {
    const worker = thread(`parentPort.on("message", () => { for (;;); })`);
    const charts = createCharts({ worker, timeoutMs: 150, maxWaiting: 1 });
    const chart: LineChart = { kind: "lines", title: "a", series: [] };
    const hanging = charts.renderChart(chart);
    const waiting = charts.renderChart(chart);
    await expect(charts.renderChart(chart)).rejects.toThrow("Too many charts are waiting");
    await expect(hanging).rejects.toThrow("took over 150 ms");
    const behind = charts.renderChart(chart);
    const closed = charts.close();
    await expect(waiting).rejects.toThrow("stopping");
    await expect(behind).rejects.toThrow("stopping");
    await closed;
    await expect(charts.renderChart(chart)).rejects.toThrow("took over 150 ms");
  });

  it("gives up when its font is missing, instead of drawing without text", async () => {
    const worker = thread(`throw new Error("can't load the font")`);
    const charts = createCharts({ worker });
    await expect(charts.renderChart({ kind: "lines", title: "a", series: [] })).rejects.toThrow(
      "can't load the font",
    );
    await charts.close();
  });
});
