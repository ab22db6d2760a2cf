import type { Block } from "@slack/types";
import { plain } from "../messages/text.ts";
import type { LineChart, Point } from "./chart.ts";
import { tidy } from "./points.ts";

/** Slack's limits: https://docs.slack.dev/reference/block-kit/blocks/data-visualization-block */
const limits = { title: 50, points: 20, label: 20, series: 6 } as const;

/** A block of June 2026, which @slack/types 3.2.0 doesn't know yet. */
export interface DataVisualization extends Block {
  type: "data_visualization";
  title: string;
  chart: {
    type: "line";
    series: { name: string; data: { label: string; value: number }[] }[];
    axis_config: { categories: string[]; x_label: string };
  };
}

/**
 * Slack's own chart, the second choice: at most 20 moments, each the mean of its stretch of time, and each with a value
 * in every series, because Slack wants one point per category. Undefined when there is nothing such a chart could show.
 */
export function chartBlock(chart: LineChart): DataVisualization | undefined {
  const series = chart.series
    .slice(0, limits.series)
    .map(({ name, points }) => ({
      name: plain(name, limits.label),
      points: tidy(points).filter(({ value }) => Number.isFinite(value)),
    }))
    .filter(({ points }) => points.length > 0);
  const times = series.flatMap(({ points }) => points.map(({ at }) => at));
  if (times.length === 0) return undefined;
  const from = times.reduce((a, b) => Math.min(a, b));
  const to = times.reduce((a, b) => Math.max(a, b));
  const count = Math.min(limits.points, Math.max(...series.map(({ points }) => points.length)));
  const width = (to - from) / count || 1;
  const means = series.map(({ points }) => meansOf(points, from, width, count));
  const moments = Array.from({ length: count }, (_, index) => index).filter((index) =>
    means.every((all) => all[index] !== undefined),
  );
  if (moments.length === 0) return undefined;
  const labels = unique(moments.map((index) => labelOf(from + (index + 0.5) * width, width)));
  return {
    type: "data_visualization",
    title: plain(chart.title, limits.title) || "Chart",
    chart: {
      type: "line",
      series: series.map(({ name }, which) => ({
        name,
        data: moments.map((moment, index) => ({
          label: labels[index] ?? "",
          value: Number((means[which]?.[moment] ?? 0).toPrecision(4)),
        })),
      })),
      axis_config: { categories: labels, x_label: "UTC" },
    },
  };
}

function meansOf(
  points: readonly Point[],
  from: number,
  width: number,
  count: number,
): (number | undefined)[] {
  const buckets = Array.from({ length: count }, () => ({ mean: 0, count: 0 }));
  for (const { at, value } of points) {
    const bucket = buckets[Math.min(count - 1, Math.floor((at - from) / width))];
    if (!bucket) continue;
    bucket.count += 1;
    bucket.mean += (value - bucket.mean) / bucket.count;
  }
  return buckets.map(({ mean, count: found }) => (found > 0 ? mean : undefined));
}

/** `14:30`, over days `20 14:30`, within a minute with its seconds. */
function labelOf(at: number, width: number): string {
  const iso = new Date(at).toISOString();
  const [date, time] = [iso.slice(5, 10), iso.slice(11, 19)];
  if (width >= 3_600_000) return `${date} ${time.slice(0, 5)}`;
  return width >= 60_000 ? time.slice(0, 5) : time;
}

/** Two equal labels would be one category. */
function unique(labels: readonly string[]): string[] {
  const seen = new Set<string>();
  return labels.map((label) => {
    let shown = label;
    for (let again = 2; seen.has(shown); again += 1) shown = `${label} (${again})`;
    seen.add(shown);
    return shown;
  });
}
