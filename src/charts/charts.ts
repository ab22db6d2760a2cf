import type { CountChart, LineChart } from "./chart.ts";
import { createCharts } from "./create-charts.ts";

/** The process's own charts: the thread starts with the first picture and never keeps the process alive. */
let charts = createCharts();

/** PNG, 1200 pixels wide. Rejects when it can't be drawn in time: show something else then. */
export function renderChart(chart: LineChart): Promise<Buffer> {
  return charts.renderChart(chart);
}

/** A small PNG of how many there are of each kind. Rejects like `renderChart`. */
export function renderCounts(chart: CountChart): Promise<Buffer> {
  return charts.renderCounts(chart);
}

/** Ends the thread; the next picture starts another one. */
export function closeCharts(): Promise<void> {
  const ended = charts;
  charts = createCharts();
  return ended.close();
}
