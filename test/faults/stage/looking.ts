import { setTimeout as sleep } from "node:timers/promises";

/** Limits are what a quiet machine needs. One with a quarter of its speed, or with other work beside, gets its time. */
const slowest = 4;

/** Asks again and again, a little apart, until there is an answer. */
export async function looking<T>(
  look: () => Promise<T | undefined>,
  timeoutMs: number,
  complain: () => Promise<string>,
): Promise<T> {
  const limitMs = slowest * timeoutMs;
  const deadline = performance.now() + limitMs;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (performance.now() > deadline)
      throw new Error(`Waited ${limitMs} ms in vain. ${await complain()}`);
    await sleep(40);
  }
}
