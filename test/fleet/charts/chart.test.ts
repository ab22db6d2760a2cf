import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { countChart, pointsOf, usageCharts, usageWords } from "../../../src/fleet/charts/chart.ts";
import { asText, inFewWords, inWords, sparkline } from "../../../src/messages/plain-text.ts";
import { card } from "../../../src/messages/card.ts";
import { md } from "../../../src/messages/markdown.ts";
import { type ChartBlock, chartBlock } from "../../../src/messages/drawn-blocks.ts";
import { paragraph, waysRow } from "../../../src/messages/parts.ts";
import { table } from "../../../src/messages/table.ts";
import { shortNumber } from "../../../src/text/short-number.ts";
import { complaintsOf, shownText } from "../../commands/shown-text.ts";

const at = Date.parse("2026-11-20T10:00:00Z");
const sample = (minutes: number, value: number) => ({
  timestamp: new Date(at + minutes * 60_000).toISOString(),
  value,
});
const row = (values: readonly number[]) => values.map((value, index) => sample(index, value));
const anySample = fc.record({
  timestamp: fc.oneof(
    fc.date().map(String),
    fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
  ),
  value: fc.double(),
});
const usageBlocks = (...given: Parameters<typeof usageCharts>) =>
  usageCharts(...given).map(chartBlock);
const countBlocks = (...given: Parameters<typeof countChart>) =>
  countChart(...given).map(chartBlock);
const valuesOf = (block: ChartBlock | undefined) =>
  block?.chart.series.map(({ data }) => data.map(({ value }) => value));

describe("a chart of metrics", () => {
  it("has at most 20 buckets of time, at round times, each with the peak of it, the same for every line", () => {
    const cpuUsage = Array.from({ length: 60 }, (_, index) => sample(index, index % 7));
    const memoryUsage = Array.from({ length: 60 }, (_, index) => sample(index, index % 10));
    const charts = usageBlocks({ cpuUsage, memoryUsage }, "web-1, last 1h");
    expect(charts).toHaveLength(1);
    const [block] = charts;
    expect(block?.title).toBe("web-1, last 1h");
    expect(block?.chart.series.map(({ name }) => name)).toEqual(["CPU", "Memory"]);
    expect(block?.chart.axis_config).toEqual({
      categories: Array.from({ length: 12 }, (_, n) => `10:${String(n * 5).padStart(2, "0")} AM`),
      x_label: "Peak of each 5 min, time in UTC",
    });
    for (const { data } of block?.chart.series ?? [])
      expect(data.map(({ label }) => label)).toEqual(block?.chart.axis_config.categories);
    expect(valuesOf(block)?.[0]?.slice(0, 4)).toEqual([4, 6, 6, 5]);
  });

  it("keeps a spike visible, however many samples there are", () => {
    const cpuUsage = row([...Array.from({ length: 3000 }, () => 1), 90, 1, 1]);
    const [block] = usageBlocks({ cpuUsage, memoryUsage: [] }, "a");
    expect(valuesOf(block)?.[0]?.length).toBeLessThanOrEqual(20);
    expect(Math.max(...(valuesOf(block)?.[0] ?? []))).toBe(90);
  });

  it("is one for lines of like size, and one each for others", () => {
    const titles = (cpu: number[], memory: number[]) =>
      usageBlocks({ cpuUsage: row(cpu), memoryUsage: row(memory) }, "a").map(({ title }) => title);
    expect(titles([1, 10], [2, 60])).toEqual(["a"]);
    expect(titles([1, 10], [2, 90])).toEqual(["CPU of a", "Memory of a"]);
    expect(titles([0, 0], [2, 90])).toEqual(["a"]);
    expect(titles([1, 10], [])).toEqual(["a"]);
  });

  it("is one each where only one has samples for some of the time, which no line leaves out", () => {
    const cpuUsage = row(Array.from({ length: 60 }, (_, index) => 20 + index));
    const charts = usageBlocks({ cpuUsage, memoryUsage: cpuUsage.slice(30) }, "a");
    expect(charts.map(({ title }) => title)).toEqual(["CPU of a", "Memory of a"]);
    expect(charts.map((one) => one.chart.axis_config.categories[0])).toEqual([
      "10:00 AM",
      "10:30 AM",
    ]);
    expect(charts.map((one) => valuesOf(one)?.[0]?.at(-1))).toEqual([79, 79]);
  });

  it("leaves out the time in which nothing was measured", () => {
    const cpuUsage = [...row([1, 2, 3]), sample(60, 4), sample(61, 5)];
    const [block] = usageBlocks({ cpuUsage, memoryUsage: [] }, "a");
    expect(block?.chart.axis_config.categories).toEqual(["10:00 AM", "11:00 AM"]);
    expect(valuesOf(block)).toEqual([[3, 5]]);
  });

  it("isn't there when there is nothing it could show", () => {
    expect(usageBlocks({ cpuUsage: [], memoryUsage: [] }, "a")).toEqual([]);
    const [alone] = usageBlocks({ cpuUsage: [sample(0, 5)], memoryUsage: [] }, "a");
    expect(alone?.chart.series).toEqual([
      { name: "CPU", data: [{ label: "10:00:00 AM", value: 5 }] },
    ]);
    expect(alone?.chart.axis_config.x_label).toBe("Peak of each 1 s, time in UTC");
  });

  it("keeps Slack's limits whatever comes", () => {
    const samples = fc.array(anySample, { maxLength: 200 });
    fc.assert(
      fc.property(fc.string(), samples, samples, (title, cpuUsage, memoryUsage) => {
        const charts = usageCharts({ cpuUsage, memoryUsage }, title);
        expect(complaintsOf(card({ push: md`m`, body: [charts] }))).toEqual([]);
      }),
    );
  });

  it("tells moments apart however near or far they are", () => {
    const labelsOver = (stepMs: number) =>
      usageBlocks(
        {
          cpuUsage: Array.from({ length: 40 }, (_, index) => ({
            timestamp: new Date(at + index * stepMs).toISOString(),
            value: 1,
          })),
          memoryUsage: [],
        },
        "a",
      )[0]?.chart.axis_config.categories;
    const seconds = ["10:00:00 AM", "10:00:01 AM", "10:00:02 AM", "10:00:03 AM"];
    expect(labelsOver(100)).toEqual(seconds);
    expect(labelsOver(60_000)?.slice(0, 2)).toEqual(["10:00 AM", "10:02 AM"]);
    expect(labelsOver(3_600_000)?.[0]).toBe("Nov 20, 10:00 AM");
    expect(labelsOver(30 * 86_400_000)?.[0]).toBe("Sep 4, 2026");
  });

  it("has the times and the days of the reader's zone", () => {
    const axisIn = (zone: string, stepMs: number) => {
      const cpuUsage = Array.from({ length: 20 }, (_, n) => sample((n * stepMs) / 60_000, n));
      return usageBlocks({ cpuUsage, memoryUsage: [] }, "a", zone)[0]?.chart.axis_config;
    };
    // Half an hour beside the full ones: its hours don't begin with those of UTC.
    const inIndia = axisIn("Asia/Kolkata", 3_600_000);
    expect(inIndia?.categories[0]).toBe("Nov 20, 3:00 PM");
    expect(inIndia?.x_label).toBe("Peak of each 1 h, time in Kolkata");
    expect(axisIn("America/New_York", 86_400_000)?.categories[0]).toBe("Nov 20, 2026");
    expect(axisIn("Europe/Paris", 300_000)?.categories[0]).toBe("11:00 AM");
  });
});

describe("a chart of counts", () => {
  it("is a bar each, the most frequent first, of at most 20 kinds", () => {
    const [block] = countBlocks("VMs by status", "VMs", ["ERROR", "RUNNING", "RUNNING", "FROZEN"]);
    expect(block?.chart).toEqual({
      type: "bar",
      series: [
        {
          name: "VMs",
          data: [
            { label: "RUNNING", value: 2 },
            { label: "ERROR", value: 1 },
            { label: "FROZEN", value: 1 },
          ],
        },
      ],
      axis_config: { categories: ["RUNNING", "ERROR", "FROZEN"], y_label: "VMs" },
    });
    const kinds = Array.from({ length: 60 }, (_, index) => `STATE-${index}`);
    expect(countBlocks("VMs", "VMs", kinds)[0]?.chart.series[0]?.data).toHaveLength(20);
    expect(countBlocks("VMs", "VMs", [])).toEqual([]);
  });

  it("keeps Slack's limits whatever comes", () => {
    fc.assert(
      fc.property(fc.string(), fc.array(fc.string(), { maxLength: 60 }), (title, labels) => {
        expect(
          complaintsOf(card({ push: md`m`, body: [countChart(title, "VMs", labels)] })),
        ).toEqual([]);
      }),
    );
  });
});

describe("a chart or a table in words", () => {
  it("says minimum, maximum and last of each line, and the disk as a number", () => {
    const usage = {
      cpuUsage: [sample(2, 30.04), sample(0, 10), sample(1, 80.26)],
      memoryUsage: [],
      diskUsage: 8_190_000_000,
    };
    expect(usageWords(usage)).toBe(
      "CPU: minimum 10, maximum 80.3, last 30 at Fri, Nov 20, 10:02 AM (UTC). Memory: no samples. Disk: 8.19G.",
    );
    expect(usageWords({ cpuUsage: [], memoryUsage: [] })).toBe(
      "CPU: no samples. Memory: no samples. Disk: no value.",
    );
  });

  it("stands where the block stood, and the rest stays as it is", () => {
    const usage = { cpuUsage: row([0, 1, 2, 3, 4, 5, 6, 7]), memoryUsage: row([5, 5]) };
    const made = card({
      push: md`Metrics`,
      body: [
        paragraph(md`Metrics of web-1`),
        usageCharts({ ...usage, memoryUsage: row([5, 5, 5, 5, 5, 5, 5, 5]) }, "web-1"),
        countChart("VMs by status", "VMs", ["RUNNING", "RUNNING", "ERROR"]),
        table(
          "VMs",
          ["Name", "Status"],
          [
            ["web-1", "RUNNING"],
            ["<!channel>", ""],
          ],
        ).part,
      ],
    });
    const said = inWords(made);
    expect(said && shownText(said)).toBe(
      [
        "Metrics of web-1",
        "*web-1* · Peak of each 1 min, time in UTC",
        "▁▂▃▄▅▆▇█ CPU: 0 to 7",
        "▄▄▄▄▄▄▄▄ Memory: 5 to 5",
        "*VMs by status*",
        "2 RUNNING · 1 ERROR",
        "*Name · Status*",
        "web-1 · RUNNING",
        "&lt;!channel&gt; · –",
      ].join("\n"),
    );
    expect(said?.text).toBe(made.text);
    expect(inWords(card({ push: md`m`, body: [paragraph(md`no chart`)] }))).toBeUndefined();
  });

  it("has every row of the longest table that fits", () => {
    const names = Array.from({ length: 100 }, (_, n) => `vm-${n}-${"&".repeat(70)}`);
    const made = table(
      "VMs",
      ["Name"],
      names.map((one) => [one]),
    );
    expect(made.shown).toBe(100);
    const said = inWords(card({ push: md`m`, body: [made.part] }));
    for (const one of ["vm-0-", "vm-57-", "vm-99-"]) expect(said && shownText(said)).toContain(one);
    // In one message that Slack takes, those that have no room are counted
    const few = inFewWords(card({ push: md`m`, body: [made.part] }));
    expect(few && complaintsOf(few)).toEqual([]);
    const rows = few ? shownText(few).split("\n") : [];
    const shown = rows.filter((line) => line.startsWith("vm-")).length;
    expect(shown).toBeGreaterThan(15);
    expect(rows.at(-1)).toBe(`… ${100 - shown} more`);
  });

  it("is text alone, within 3,900 bytes, where Slack takes no blocks: its lines, and how many are left out", () => {
    const names = Array.from({ length: 100 }, (_, n) => [`vm-${n}-${"ü".repeat(70)}`]);
    const pressed = waysRow([{ label: "Show", action: "run:vm.show", value: "{}" }]);
    const { text, blocks } = asText(
      card({ push: md`m`, body: [table("VMs", ["Name"], names).part, pressed] }),
    );
    expect(blocks).toEqual([]);
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(3_900);
    const shown = text.split("\n").filter((line) => line.startsWith("vm-")).length;
    expect(text).toContain(`… ${100 - shown} more lines`);
    expect(text).toMatch(/its buttons are missing\. `\/gatehouse help` lists/);
  });

  it("draws any values as bars", () => {
    expect(sparkline([0, 1, 2, 3, 4, 5, 6, 7])).toBe("▁▂▃▄▅▆▇█");
    expect(sparkline([5, 5, 5])).toBe("▄▄▄");
    fc.assert(
      fc.property(fc.array(fc.double({ min: -1e300, max: 1e300, noNaN: true })), (all) => {
        expect(Array.from(sparkline(all))).toHaveLength(all.length);
        expect(sparkline(all)).toMatch(/^[▁▂▃▄▅▆▇█]*$/u);
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

describe("points", () => {
  it("are put in order, without what can't be read", () => {
    fc.assert(
      fc.property(fc.array(anySample, { maxLength: 300 }), (all) => {
        const points = pointsOf(all);
        expect(points.map((point) => point.at)).toEqual(
          points.map((point) => point.at).toSorted((a, b) => a - b),
        );
        const known = all.filter(
          ({ timestamp, value }) => !Number.isNaN(Date.parse(timestamp)) && Math.abs(value) < 1e300,
        );
        expect(points).toHaveLength(known.length);
      }),
    );
  });
});
