import { setTimeout as delay } from "node:timers/promises";
import { deadlineMs, within } from "../../deadline.ts";
import { type FleetReading, readEverything } from "./read-everything.ts";

/**
 * How long a person waits for newer data (ms). A dialog must open within three seconds of the
 * command.
 */
const patienceMs = 1_500;
/**
 * A larger fleet isn't read completely for one name. The answer says how old the list is instead.
 */
const maxProjectsToSeek = 50;

interface RefreshOptions extends FleetReading {
  /** The time between two regular refreshes (ms). */
  refreshMs: number;
  /** The time between the starts of two refreshes for people, however many ask (ms). */
  againMs: number;
}

/** Reads the whole fleet from the service: one refresh at a time in this process. */
export class FleetRefresh {
  readonly #on: RefreshOptions;
  #begunAt = -Infinity;
  #running: Promise<boolean> | undefined;
  /** The refresh that begins next, which everyone who asks before then shares. */
  #next: Promise<boolean> | undefined;
  /** Why the list of projects could not be read last time. */
  #listFailure: string | undefined;
  /** Describes the projects that could not be read last time. */
  #gaps = "";

  constructor(on: RefreshOptions) {
    this.#on = on;
  }

  /** Starts a refresh, or joins the one that runs. Resolves with true when it completed. */
  run(): Promise<boolean> {
    this.#running ??= this.#refresh().finally(() => (this.#running = undefined));
    return this.#running;
  }

  /**
   * Waits for a refresh that began after the question: other people create VMs, too. Without
   * `patience` it waits at most 1.5 s, and not at all for a large fleet.
   */
  async upToDate(patience?: number, askedAt = performance.now()): Promise<void> {
    const isLarge = this.#on.known.count().projects > maxProjectsToSeek;
    if (patience === undefined && isLarge) return;
    const leftMs = () => askedAt + deadlineMs(patience ?? patienceMs) - performance.now();
    for (let isOver = false; !isOver && leftMs() > 0;)
      isOver = await within(leftMs(), (this.#next ??= this.#begin()), () => true);
  }

  /** Resolves when the refresh that runs has ended, however it did. */
  async idle(): Promise<void> {
    await this.#running?.catch(() => undefined);
  }

  async #begin(): Promise<boolean> {
    const waitMs = this.#begunAt + this.#on.againMs - performance.now();
    await delay(Math.max(0, waitMs), undefined, { ref: false });
    this.#next = undefined;
    this.#begunAt = performance.now();
    // The refresh that runs began before the question, so it doesn't count.
    await this.idle();
    // The regular refresh meets the same error and logs it.
    return this.run().catch(() => false);
  }

  async #refresh(): Promise<boolean> {
    const { known, replica, log } = this.#on;
    await replica.sync();
    const result = await readEverything(this.#on);
    if (!result) return false;
    const { failed, reason, unread, gaps } = result;
    this.#logFailure(reason);
    if (failed) await replica.failed();
    else if (!(await replica.complete({ unread, gaps }))) return false;
    await replica.sync();
    this.#logGaps();
    log.debug("inventory.refreshed", { ...known.count(), failed, unread: unread.length });
    return !failed;
  }

  /**
   * Logs the state of the list once. It is read every ten seconds while it fails, so a line is
   * written only when it fails, fails for another reason, or works again.
   */
  #logFailure(reason: string | undefined): void {
    if (reason === this.#listFailure) return;
    this.#listFailure = reason;
    if (reason === undefined) this.#on.log.info("inventory.list-read-again");
    else this.#on.log.warn("inventory.list-failed", { reason });
  }

  /** Logs one line when other things than before can't be read, or when everything can. */
  #logGaps(): void {
    const { replica, known, log } = this.#on;
    const gaps = [replica.head().gaps, ...known.gaps()].filter((words) => words !== "").join("; ");
    if (gaps === this.#gaps) return;
    this.#gaps = gaps;
    if (gaps === "") log.info("inventory.complete-again");
    else log.warn("inventory.incomplete", { gaps: gaps.slice(0, 1000) });
  }
}
