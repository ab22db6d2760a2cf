import { parentPort } from "node:worker_threads";
import type { Chart } from "./chart.ts";
import { draw } from "./draw.ts";

// One chart in, one PNG out. Drawing takes 20-30 ms of CPU, which would delay acks.
parentPort?.on("message", (chart: Chart) => parentPort?.postMessage(draw(chart), []));
