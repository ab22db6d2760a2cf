import { Session } from "node:inspector";
import { performance } from "node:perf_hooks";

/** The signals that a person or a supervisor sends to this process. */
export interface Signals {
  /**
   * Aborted by the first SIGTERM or SIGINT, with its name as the reason. A second one ends the
   * process at once.
   */
  readonly stopping: AbortSignal;
  /**
   * Registers a listener for SIGHUP, which rereads the policy file, and SIGUSR1, which changes
   * nothing. Signals from before this call are passed on, too.
   */
  onOther(listener: (signal: string) => void): void;
}

/** The exit codes that shells use for signals: 128 plus the signal's number. */
export const signalExitCodes = { SIGINT: 130, SIGTERM: 143 } as const;

/**
 * Catches signals from now on. Without a handler, process 1 of a container ignores SIGTERM, SIGHUP
 * ends any other process, and SIGUSR1 makes Node.js open a debugger. None of that may depend on how
 * far the start has come, so this file imports nothing of ours and can be loaded before everything
 * else.
 */
export function catchSignals(): Signals {
  const stopping = new AbortController();
  const early: string[] = [];
  let handleSignal = (signal: string): void => void early.push(signal);
  const stop = (signal: string) => {
    if (stopping.signal.aborted) process.exit(1);
    stopping.abort(signal);
  };
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
  process.on("SIGHUP", (signal) => handleSignal(signal));
  process.on("SIGUSR1", (signal) => handleSignal(signal));
  return {
    stopping: stopping.signal,
    onOther(listener) {
      handleSignal = listener;
      for (const signal of early.splice(0)) listener(signal);
    },
  };
}

/**
 * From now on, this process outlives the readers of its standard output and error: the terminal, the
 * pipe, or the disk behind them may go away at any time. Without a listener, such an error would be
 * an uncaught one and end the process.
 */
export function outliveReaders(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
}

/** How often it checks whether there is memory to release (ms). */
const lookMs = 5_000;
/** Releasing less isn't worth a pause of a tenth of a second (bytes). */
const worthBytes = 16 * 1024 * 1024;
/** Below this utilization of the event loop, nobody waits for the process. */
const idleUtilization = 0.05;

/**
 * Releases the memory that the start left behind (source texts, and a young generation that grew
 * for them) and, later, that of busy times. V8 alone keeps both until much is allocated again,
 * which an idle process never does. Each collection takes about a tenth of a second, and happens
 * when the process has been idle for some seconds.
 */
export function collectGarbage(everyMs = lookMs): void {
  // The inspector session stays inside the process; no port is opened. Of the ways to ask V8, this
  // one also shrinks the young generation.
  const session = new Session();
  session.connect();
  let kept = Infinity;
  const collect = () => {
    // V8 collects in a later turn of the event loop; until then, no further collection is due.
    kept = Infinity;
    session.post("HeapProfiler.collectGarbage", () => {
      kept = process.memoryUsage().heapTotal;
    });
  };
  collect();
  let before = performance.eventLoopUtilization();
  setInterval(() => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    if (utilization > idleUtilization) return;
    if (process.memoryUsage().heapTotal > kept + worthBytes) collect();
  }, everyMs).unref();
}
