import { setImmediate as nextTurn } from "node:timers/promises";

/** A person's command is acknowledged in between (ms). */
const longestMs = 10;

/**
 * For long loops, and for several that share the work: what it returns is awaited before each step, and lets others have a turn of
 * the event loop once the steps of this one have taken long enough.
 */
export function pauseNowAndThen(): () => Promise<void> {
  let beganAt = performance.now();
  let next: Promise<void> | undefined;

  async function begin(): Promise<void> {
    await nextTurn();
    next = undefined;
    beganAt = performance.now();
  }

  return async () => {
    while (performance.now() - beganAt >= longestMs) await (next ??= begin());
  };
}
