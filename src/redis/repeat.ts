import { messageOf } from "../errors.ts";
import type { Log } from "../log/log.ts";

export type Repeated = ReturnType<typeof repeatHere>;

/**
 * Repeats a task in each process, because it is about that process's own memory, disk, or view of
 * other systems. A task that one process does for all is a BullMQ schedule instead
 * (`src/queue/schedules.ts`). The task never runs twice at once here. A failure is logged, and the
 * task runs again at the next time.
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
    // The jitter keeps processes from running the task at the same moment.
    timer = setTimeout(() => void now(), everyMs * (0.75 + Math.random() / 2));
  }

  /** Runs the task now, or joins the run in progress. Does nothing once it is closed. */
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
