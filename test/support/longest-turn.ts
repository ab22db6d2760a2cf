import { setImmediate as turn } from "node:timers/promises";
import { threadCpuMs } from "./thread-cpu.ts";

/**
 * The longest that the event loop was held up while `work` ran, in milliseconds of this thread's CPU time: what else the machine
 * does meanwhile doesn't count.
 */
export async function longestTurn(work: () => Promise<unknown>): Promise<number> {
  let longestMs = 0;
  let isOver = false;
  const watched = (async () => {
    let before = threadCpuMs();
    while (!isOver) {
      await turn();
      const now = threadCpuMs();
      longestMs = Math.max(longestMs, now - before);
      before = now;
    }
  })();
  await turn();
  try {
    await work();
    await turn();
  } finally {
    isOver = true;
    await watched;
  }
  return longestMs;
}
