import { Worker } from "node:worker_threads";
import { messageOf } from "../errors.ts";
import type { Chart, CountChart, LineChart } from "./chart.ts";
import type { Drawn } from "./draw-worker.ts";

/** Makes pictures off the event loop. A call rejects when it takes too long, too many wait, or drawing fails. */
export interface Charts {
  renderChart(chart: LineChart): Promise<Buffer>;
  renderCounts(chart: CountChart): Promise<Buffer>;
  close(): Promise<void>;
}

export interface ChartsOptions {
  /** For one picture, the start of the thread included. */
  timeoutMs?: number;
  mostWaiting?: number;
  /** Tests put a broken one here. */
  worker?: URL;
}

interface Job {
  chart: Chart;
  resolve(png: Buffer): void;
  reject(error: Error): void;
}

/**
 * One thread, started with the first picture, draws one at a time. One that crashes or hangs is ended and takes the
 * picture at hand with it; the next picture starts a new one. It never keeps the process alive.
 */
export function createCharts(options: ChartsOptions = {}): Charts {
  const { timeoutMs = 8_000, mostWaiting = 50 } = options;
  const source = options.worker ?? new URL("./draw-worker.ts", import.meta.url);
  const waiting: Job[] = [];
  let worker: Worker | undefined;
  let current: { job: Job; timer: NodeJS.Timeout } | undefined;
  let isClosed = false;

  function start(): Worker {
    // No environment: nothing secret is in a thread that draws what came from outside
    const started = new Worker(source, {
      env: {},
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: 256 },
    });
    started.unref();
    started.on("message", (drawn: Drawn) => {
      if (started !== worker) return;
      end((job) =>
        "png" in drawn
          ? job.resolve(Buffer.from(drawn.png.buffer, drawn.png.byteOffset, drawn.png.byteLength))
          : job.reject(new Error(`The chart can't be drawn: ${drawn.problem}`)),
      );
    });
    started.on("error", (error: unknown) => lose(started, messageOf(error)));
    started.on("exit", (code) => lose(started, `exit ${code}`));
    return started;
  }

  /** That thread is gone, or has to go. */
  function lose(lost: Worker, why: string): void {
    if (lost !== worker) return;
    worker = undefined;
    void lost.terminate();
    end((job) => job.reject(new Error(`The chart can't be drawn: ${why}`)));
  }

  function end(how: (job: Job) => void): void {
    const ended = current;
    current = undefined;
    if (ended) {
      clearTimeout(ended.timer);
      how(ended.job);
    }
    next();
  }

  function next(): void {
    if (current || isClosed) return;
    const job = waiting.shift();
    if (!job) return;
    worker ??= start();
    const drawing = worker;
    const timer = setTimeout(() => lose(drawing, `took over ${timeoutMs} ms`), timeoutMs);
    current = { job, timer };
    drawing.postMessage(job.chart, []);
  }

  function render(chart: Chart): Promise<Buffer> {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
    if (isClosed) reject(new Error("No more charts are drawn: stopping."));
    else if (waiting.length >= mostWaiting) reject(new Error("Too many charts wait already."));
    else waiting.push({ chart, resolve, reject });
    next();
    return promise;
  }

  return {
    renderChart: render,
    renderCounts: render,
    async close() {
      isClosed = true;
      const ended = worker;
      worker = undefined;
      for (const job of waiting.splice(0))
        job.reject(new Error("No more charts are drawn: stopping."));
      end((job) => job.reject(new Error("No more charts are drawn: stopping.")));
      await ended?.terminate();
    },
  };
}
