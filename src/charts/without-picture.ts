import { plain } from "../messages/text.ts";
import type { LineChart, Point } from "./chart.ts";

/** Slack's limits: https://docs.slack.dev/reference/block-kit/blocks/data-visualization-block */
const limits = { title: 50, points: 20, label: 20, series: 6 } as const;

/**
 * Slack's own chart, the second choice, a block of June 2026 that @slack/types 3.2.0 lacks: at most 20 means over equal
 * stretches of time, and only those with a value in every series, as Slack requires. Undefined when none is left.
 */
export function chartBlock(chart: LineChart) {
  const series = chart.series.filter(({ points }) => points.length > 0).slice(0, limits.series);
  const from = Math.min(...series.map(({ points }) => points[0]?.at ?? 0));
  const to = Math.max(...series.map(({ points }) => points.at(-1)?.at ?? 0));
  const longest = Math.max(...series.map(({ points }) => points.length));
  // Labels have a resolution of 1 s
  const count = Math.max(1, Math.min(limits.points, longest, Math.floor((to - from) / 1000)));
  const width = (to - from) / count || 1;
  const stretchOf = ({ at }: Point) => Math.min(count - 1, Math.floor((at - from) / width));
  const stretches = series.map(({ points }) => Map.groupBy(points, stretchOf));
  const moments = [...(stretches[0]?.keys() ?? [])].filter((moment) =>
    stretches.every((one) => one.has(moment)),
  );
  if (moments.length === 0) return undefined;
  const labels = moments.map((moment) => labelOf(from + (moment + 0.5) * width, width));
  return {
    type: "data_visualization",
    title: plain(chart.title, limits.title) || "Chart",
    chart: {
      type: "line",
      series: series.map(({ name }, which) => ({
        name: plain(name, limits.label),
        data: moments.map((moment, index) => ({
          label: labels[index] ?? "",
          value: meanOf(stretches[which]?.get(moment) ?? []),
        })),
      })),
      axis_config: { categories: labels, x_label: "UTC" },
    },
  };
}

function meanOf(points: readonly Point[]): number {
  const sum = points.reduce((all, { value }) => all + value, 0);
  return Number((sum / points.length).toPrecision(4));
}

/** `14:30`, over days `11-20 14:30`, over months `2026-11-20`, within a minute `14:30:05`. */
function labelOf(at: number, width: number): string {
  const [date = "", time = ""] = new Date(at).toISOString().split("T");
  if (width >= 24 * 3_600_000) return date;
  if (width >= 3_600_000) return `${date.slice(-5)} ${time.slice(0, 5)}`;
  return time.slice(0, width >= 60_000 ? 5 : 8);
}

const bars = Array.from("▁▂▃▄▅▆▇█");

/** Text, the last choice: at most `most` bars, each the highest value of its stretch, so that spikes stay visible. */
export function sparkline(points: readonly Point[], most = 30): string {
  const columns = Math.min(most, points.length);
  const peaks = Array.from({ length: columns }, (_, index) => {
    const [from, to] = [index, index + 1].map((at) => Math.floor((at * points.length) / columns));
    return points.slice(from, to).reduce((peak, { value }) => Math.max(peak, value), -Infinity);
  });
  const [low, high] = [Math.min(...peaks), Math.max(...peaks)];
  const barOf = (peak: number) =>
    low === high ? 3 : Math.min(7, Math.floor(((peak - low) / (high - low)) * 8));
  return peaks.map((peak) => bars[barOf(peak)]).join("");
}
