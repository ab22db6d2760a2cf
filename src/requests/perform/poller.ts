import { within } from "../../deadline.ts";
import { messageOf } from "../../errors.ts";
import type { Log } from "../../log/log.ts";
import type { Polls } from "../journal/polls.ts";

/** What a poll resolves with: when to poll next, that nothing is left, or that another worker polls the key. */
type Polled = { is: "ended" } | { is: "wait"; ms: number } | { is: "theirs" };

/**
 * Polls by this process's own timers. Redis only knows who polls what, and until when: what this process has sent is polled by it,
 * and what it no longer polls is found by the others.
 *
 *     watch(soon) ──► taken, under a lease ──► polled ──► a timer ──► polled …      each poll renews the lease
 *                                                └──► nothing left, or another worker took it: forgotten here
 *     look()      ──► taken, where the lease of its poller has run out
 */
interface Poller {
  /** `soon`: polls the key now, whoever polls it otherwise. Without it, someone polls it. */
  watch(pollKey: string, soon: boolean): Promise<void>;
  /** Takes over what no one polls any more. */
  look(): Promise<void>;
  /** Waits for the polls under way, and leaves the rest to others at once. */
  close(deadlineMs: number): Promise<void>;
}

interface Polling {
  polls: number;
  timer?: NodeJS.Timeout | undefined;
  /** A poll is under way. */
  running?: Promise<void> | undefined;
  /** It was asked for while one was under way. */
  isAskedAgain?: boolean;
}

/** A poll that finds no room is tried again so soon (ms). */
const roomMs = 50;

export function createPoller(options: {
  polls: Polls;
  workerId: string;
  /** Read at each use: it may change. */
  leaseMs(): number;
  /** Polls under way at a time. */
  most: number;
  poll(pollKey: string, how: { polls: number; always: boolean }): Promise<Polled>;
  log: Log;
}): Poller {
  const { polls, workerId, leaseMs, most, log } = options;
  const known = new Map<string, Polling>();
  let running = 0;
  let isClosed = false;

  function begin(pollKey: string, always: boolean): void {
    if (isClosed) return;
    const polling = known.get(pollKey) ?? { polls: 0 };
    known.set(pollKey, polling);
    if (polling.running) {
      polling.isAskedAgain ||= always;
      return;
    }
    clearTimeout(polling.timer);
    if (running >= most) return later(pollKey, polling, roomMs, always);
    running += 1;
    polling.running = run(pollKey, polling, always).finally(() => (running -= 1));
  }

  function later(pollKey: string, polling: Polling, ms: number, always = false): void {
    if (!isClosed) polling.timer = setTimeout(() => begin(pollKey, always), ms);
  }

  async function run(pollKey: string, polling: Polling, always: boolean): Promise<void> {
    const next = await renewing(pollKey, async () => {
      polling.polls += 1;
      return options.poll(pollKey, { polls: polling.polls, always });
    });
    polling.running = undefined;
    const isAskedAgain = polling.isAskedAgain === true;
    polling.isAskedAgain = false;
    if (isAskedAgain) return begin(pollKey, true);
    if (next.is === "wait") later(pollKey, polling, next.ms);
    else known.delete(pollKey);
  }

  /** A lease that would run out before the next poll is renewed, also while a poll takes long. */
  async function renewing(pollKey: string, poll: () => Promise<Polled>): Promise<Polled> {
    const ms = leaseMs();
    const began = performance.now();
    const keep = (forMs: number) =>
      polls.keep([pollKey], workerId, forMs).catch((error: unknown) => {
        log.debug("poll.not-kept", { pollKey, why: messageOf(error) });
      });
    let renewed = began;
    const renewal = setInterval(() => {
      renewed = performance.now();
      void keep(ms);
    }, ms / 2);
    try {
      const next = await poll();
      if (next.is === "wait" && performance.now() - renewed + next.ms > ms * 0.8)
        await keep(next.ms + ms);
      return next;
    } catch (error) {
      log.warn("poll.failed", { pollKey, why: messageOf(error) });
      return { is: "wait", ms };
    } finally {
      clearInterval(renewal);
    }
  }

  return {
    async watch(pollKey, soon) {
      if (soon) begin(pollKey, true);
      else if (!known.has(pollKey)) await polls.expect(pollKey);
    },
    async look() {
      const room = most - running;
      if (room <= 0) return;
      for (const pollKey of await polls.takeOver(workerId, leaseMs(), room)) begin(pollKey, false);
    },
    async close(deadlineMs) {
      isClosed = true;
      for (const { timer } of known.values()) clearTimeout(timer);
      const underWay = [...known.values()].flatMap((polling) => polling.running ?? []);
      await within(deadlineMs, Promise.all(underWay), () => undefined);
      await polls.keep([...known.keys()], workerId, 0).catch(() => undefined);
    },
  };
}
