import { performance } from "node:perf_hooks";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

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
export function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  const gc: unknown = runInNewContext("gc");
  if (typeof gc !== "function") return;
  // `last-resort` also shrinks the young generation
  const collect = () => {
    gc({ type: "major", flavor: "last-resort" });
    return process.memoryUsage().heapTotal;
  };
  let kept = collect();
  let before = performance.eventLoopUtilization();
  setInterval(() => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    if (utilization > idleUtilization) return;
    if (process.memoryUsage().heapTotal > kept + worthBytes) kept = collect();
  }, lookMs).unref();
}
