import { within } from "../../deadline.ts";
import type { Log } from "../../log/log.ts";

/** Work that goes on after an acknowledgment. */
export class Background {
  readonly #log: Log;
  readonly #running = new Set<Promise<void>>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** Starts the work at once. The result never rejects. */
  run(work: () => Promise<void> | void): Promise<void> {
    const task = Promise.try(work)
      .catch((error: unknown) => this.#log.error("slack.handling-failed", { error }))
      .finally(() => this.#running.delete(task));
    this.#running.add(task);
    return task;
  }

  /**
   * Starts the work after the acknowledgment was sent, so that no acknowledgment waits for the work
   * of another delivery. `idle` waits for it.
   */
  runAfterAck(work: () => Promise<void>): void {
    const acknowledged = new Promise((resolve) => setImmediate(resolve));
    void this.run(() => acknowledged.then(work));
  }

  running(): number {
    return this.#running.size;
  }

  /** Waits until nothing runs, at most `withinMs`. Resolves with how many still run. */
  async idle(withinMs: number): Promise<number> {
    const running = this.#running;
    const until = performance.now() + withinMs;
    const leftMs = () => until - performance.now();
    while (running.size > 0 && leftMs() > 0)
      await within(leftMs(), Promise.allSettled(running), () => undefined);
    if (running.size > 0)
      this.#log.warn("slack.still-handling", { running: running.size, withinMs });
    return running.size;
  }
}
