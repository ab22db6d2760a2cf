import { Worker } from "node:worker_threads";
import { messageOf } from "../errors.ts";
import type { Chart } from "./chart.ts";

interface ChartsOptions {
  /** For one chart, including the start of the thread. */
  timeoutMs?: number;
  maxWaiting?: number;
  /** For tests. */
  worker?: URL;
}

/**
 * Draws charts one at a time in one thread, started with the first. A thread that crashes or hangs is ended, its chart
 * fails, and the next chart starts a new thread. It never keeps the process alive.
 */
export function createCharts(options: ChartsOptions = {}) {
  const { timeoutMs = 8_000, maxWaiting = 50 } = options;
  const source = options.worker ?? new URL("./draw-worker.ts", import.meta.url);
  let worker: Worker | undefined;
  let current: PromiseWithResolvers<Buffer> | undefined;
  let lastTurn: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  let timesClosed = 0;

  function start(): Worker {
    // No environment: keeps secrets out of a thread that draws untrusted data
    const started = new Worker(source, {
      env: {},
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: 256 },
    });
    started.unref();
    started.on("message", (png: Uint8Array) => {
      if (started === worker) current?.resolve(Buffer.from(png));
    });
    started.on("error", (error: unknown) => void lose(started, messageOf(error)));
    started.on("exit", (code) => void lose(started, `exit ${code}`));
    return started;
  }

  async function lose(lost: Worker, why: string): Promise<void> {
    if (lost !== worker) return;
    worker = undefined;
    current?.reject(new Error(`The chart can't be drawn: ${why}`));
    await lost.terminate();
  }

  function draw(chart: Chart): Promise<Buffer> {
    const drawing = (worker ??= start());
    drawing.postMessage(chart, []);
    current = Promise.withResolvers<Buffer>();
    const timer = setTimeout(() => void lose(drawing, `took over ${timeoutMs} ms`), timeoutMs);
    return current.promise.finally(() => clearTimeout(timer));
  }

  return {
    /** A PNG, 1200 pixels wide. Rejects when it can't be drawn in time. */
    async renderChart(chart: Chart): Promise<Buffer> {
      if (waiting > maxWaiting) throw new Error("Too many charts are waiting.");
      const closedBefore = timesClosed;
      waiting += 1;
      const turn = lastTurn
        .then(() => {
          if (timesClosed > closedBefore) throw new Error("The chart isn't drawn: stopping.");
          return draw(chart);
        })
        .finally(() => {
          waiting -= 1;
        });
      lastTurn = turn.catch(() => {});
      return turn;
    },
    /** Ends the thread and rejects what waits for it; the next chart starts another. */
    async close(): Promise<void> {
      timesClosed += 1;
      if (worker) await lose(worker, "stopping");
    },
  };
}

/** The process's own. */
export const { renderChart, close: closeCharts } = createCharts();
