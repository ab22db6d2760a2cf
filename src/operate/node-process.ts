import { Session } from "node:inspector";
import { performance } from "node:perf_hooks";

/** What a person or a supervisor told this process. */
export interface Signals {
  /** Aborted by the first SIGTERM or SIGINT, with its name as the reason; a second one ends the process at once. */
  readonly stopping: AbortSignal;
  /** SIGHUP, which rereads the policy file, and SIGUSR1, which changes nothing; those before this call included. */
  onOther(listener: (signal: string) => void): void;
}

/** The codes that shells give to a signal: 128 and its number. */
export const signalExitCodes = { SIGINT: 130, SIGTERM: 143 } as const;

/**
 * Catches signals from now on. As process 1 of a container a process without a handler ignores SIGTERM, SIGHUP ends any
 * other, and SIGUSR1 makes Node.js open a debugger: none of them may depend on how far the start has come. This file imports
 * nothing of ours, so that it can come before everything.
 */
export function catchSignals(): Signals {
  const stopping = new AbortController();
  const early: string[] = [];
  let tell = (signal: string): void => void early.push(signal);
  const stop = (signal: string) => {
    if (stopping.signal.aborted) process.exit(1);
    stopping.abort(signal);
  };
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
  process.on("SIGHUP", (signal) => tell(signal));
  process.on("SIGUSR1", (signal) => tell(signal));
  return {
    stopping: stopping.signal,
    onOther(listener) {
      tell = listener;
      for (const signal of early.splice(0)) listener(signal);
    },
  };
}

/** How often it looks whether there is something to give back. */
const lookMs = 5_000;
/** Less isn't worth a pause of a tenth of a second (bytes). */
const worthBytes = 16 * 1024 * 1024;
/** A process that does this little makes nobody wait. */
const idleUtilization = 0.05;

/**
 * Gives back what starting left behind (sources that were read, and a young generation that grew for them) and, later, what a
 * busy time did: V8 alone keeps both until much is allocated again, which an idle process never does. Each collection takes
 * about a tenth of a second, once the process has been idle for some seconds.
 */
export function collectGarbage(everyMs = lookMs): void {
  // Within the process: nothing listens. Of the ways to ask V8, this one also shrinks the young generation
  const session = new Session();
  session.connect();
  let kept = Infinity;
  const collect = () => {
    // V8 does it in a later turn; until then none is due
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
