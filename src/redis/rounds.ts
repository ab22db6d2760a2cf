import { messageOf } from "../errors.ts";
import type { Log } from "../log/log.ts";

export type Rounds = ReturnType<typeof startRounds>;

/** A repeated task, never twice at once in this process; a failure is logged and the next round runs. */
export function startRounds(
  name: string,
  everyMs: number,
  round: () => Promise<unknown>,
  log: Log,
) {
  let running: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;

  async function run(): Promise<void> {
    clearTimeout(timer);
    try {
      await round();
    } catch (error) {
      log.warn("round.failed", { name, why: messageOf(error) });
    }
    running = undefined;
    if (!isClosed) next();
  }

  function next(): void {
    // Jitter, so that processes don't run it at the same moment
    timer = setTimeout(() => void now(), everyMs * (0.75 + Math.random() / 2));
  }

  /** Runs a round now, or joins the running one. */
  const now = (): Promise<void> => (running ??= run());

  next();
  return {
    now,
    async close(): Promise<void> {
      isClosed = true;
      clearTimeout(timer);
      await running;
    },
  };
}
