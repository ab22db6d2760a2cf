import { Session } from "node:inspector";
import { performance } from "node:perf_hooks";

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
