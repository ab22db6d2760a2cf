import { parentPort } from "node:worker_threads";
import { loadFonts } from "./canvas.ts";
import type { Chart } from "./chart.ts";
import { drawCounts } from "./draw-counts.ts";
import { drawLines } from "./draw-lines.ts";

/** The thread that draws: one chart in, one PNG out. Drawing takes 20-30 ms of pure work, which would delay acks. */

export type Drawn = { png: Uint8Array } | { problem: string };

loadFonts();

parentPort?.on("message", (chart: Chart) => {
  parentPort?.postMessage(draw(chart), []);
});

function draw(chart: Chart): Drawn {
  try {
    return { png: chart.kind === "lines" ? drawLines(chart) : drawCounts(chart) };
  } catch (error) {
    return { problem: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}
