import { setTimeout as sleep } from "node:timers/promises";

/** Asks again and again, a little apart, until there is an answer. */
export async function looking<T>(
  look: () => Promise<T | undefined>,
  timeoutMs: number,
  complain: () => Promise<string>,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (performance.now() > deadline)
      throw new Error(`Waited ${timeoutMs} ms in vain. ${await complain()}`);
    await sleep(40);
  }
}
