import { threadCpuMs } from "./thread-cpu.ts";

/** How long it takes at best, of three times, in ms of this thread's CPU time: a busy machine may slow one down. */
export function quickest(work: () => void): number {
  const times = Array.from({ length: 3 }, () => {
    const before = threadCpuMs();
    work();
    return threadCpuMs() - before;
  });
  return Math.min(...times);
}
