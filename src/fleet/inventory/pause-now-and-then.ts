import { setImmediate as nextTurn } from "node:timers/promises";

/**
 * The longest time without a pause (ms), so that a person's command can be acknowledged in between.
 */
const longestMs = 10;

/**
 * Makes pauses in long loops, and in several loops that share work. The result is awaited before
 * each step. It lets other work run in the event loop once the steps since the last pause have
 * taken long enough.
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
