import { messageOf } from "../errors.ts";
import type { Log } from "../log/log.ts";

export type Repeated = ReturnType<typeof repeatHere>;

/**
 * A task that each process repeats for itself, as it is about its own memory, disk, or view of others; what one process does for
 * all is a schedule of BullMQ (`src/queue/schedules.ts`). Never twice at once here; a failure is logged and the next time comes.
 */
export function repeatHere(name: string, everyMs: number, task: () => Promise<unknown>, log: Log) {
  let running: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;

  async function run(): Promise<void> {
    clearTimeout(timer);
    try {
      await task();
    } catch (error) {
      log.warn("task.failed", { name, why: messageOf(error) });
    }
    running = undefined;
    if (!isClosed) next();
  }

  function next(): void {
    // Jitter, so that processes don't run it at the same moment
    timer = setTimeout(() => void now(), everyMs * (0.75 + Math.random() / 2));
  }

  /** Runs it now, or joins the one that runs; does nothing once it is closed. */
  const now = async (): Promise<void> => (isClosed ? running : (running ??= run()));

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
