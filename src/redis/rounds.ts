import type { Log } from "../log/log.ts";
import { messageOf } from "../errors.ts";

/** A repeated task, never twice at once in this process; a failure is logged and the next round runs. */
export interface Rounds {
  /** Runs a round now, or joins the running one. */
  now(): Promise<void>;
  close(): Promise<void>;
}

export function startRounds(
  name: string,
  everyMs: number,
  round: () => Promise<unknown>,
  log: Log,
): Rounds {
  let running: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;

  async function run(): Promise<void> {
    try {
      await round();
    } catch (error) {
      log.warn("round.failed", { name, why: messageOf(error) });
    }
  }

  function next(): void {
    // Jitter, so that processes don't run it at the same moment
    timer = setTimeout(() => void now(), everyMs * (0.75 + Math.random() / 2));
  }

  async function now(): Promise<void> {
    clearTimeout(timer);
    running ??= run().finally(() => {
      running = undefined;
      if (!isClosed) next();
    });
    await running;
  }

  next();
  return {
    now,
    async close() {
      isClosed = true;
      clearTimeout(timer);
      await running;
    },
  };
}
