import { within } from "../../deadline.ts";
import { messageOf } from "../../errors.ts";
import type { Log } from "../../log/log.ts";
import type { Polls } from "../journal/polls.ts";
import type { Polled } from "./poll.ts";
import type { Known } from "./worker-context.ts";

/**
 * Polls by this process's own timers. Redis only knows who polls what, and until when: what this process has sent is polled by it,
 * and what it no longer polls is found by the others.
 *
 *     watch(soon) ──► taken, under a lease ──► polled ──► a timer ──► polled …      what takes or moves it renews the lease
 *                                                └──► nothing left, or another worker took it: forgotten here
 *     look()      ──► taken, where the lease of its poller has run out
 */
interface Poller {
  /** `soon`: polls the key now, whoever polls it otherwise; what is `known` was taken with it. Without it, someone polls it. */
  watch(pollKey: string, soon: boolean, known?: Known): Promise<void>;
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
  again?: How | undefined;
  /** Since when its lease runs, by this process's clock. */
  leasedAt: number;
  /** No poll before that, by this process's clock. */
  restsUntil: number;
}

interface How {
  /** Whoever polls it otherwise. */
  always: boolean;
  known?: Known | undefined;
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
  poll(pollKey: string, how: How & { polls: number }): Promise<Polled>;
  log: Log;
}): Poller {
  const { polls, workerId, leaseMs, most, log } = options;
  const polled = new Map<string, Polling>();
  let running = 0;
  let isClosed = false;

  function begin(pollKey: string, how: How): void {
    if (isClosed) return;
    const polling = polled.get(pollKey) ?? { polls: 0, leasedAt: -Infinity, restsUntil: 0 };
    polled.set(pollKey, polling);
    if (polling.running) {
      if (how.always) polling.again = how;
      return;
    }
    clearTimeout(polling.timer);
    const room = running < most ? 0 : roomMs;
    const inMs = Math.max(room, polling.restsUntil - performance.now());
    if (inMs > 0) return later(pollKey, polling, inMs, how);
    running += 1;
    polling.running = run(pollKey, polling, how).finally(() => (running -= 1));
  }

  function later(pollKey: string, polling: Polling, ms: number, how: How): void {
    if (!isClosed) polling.timer = setTimeout(() => begin(pollKey, how), ms);
  }

  async function run(pollKey: string, polling: Polling, how: How): Promise<void> {
    // A poll takes the key, unless what it knows was taken with it
    const leasedAt = performance.now() - (how.known?.elapsedMs() ?? 0);
    polling.leasedAt = Math.max(polling.leasedAt, leasedAt);
    const next = await renewing(pollKey, polling, () => {
      polling.polls += 1;
      return options.poll(pollKey, { ...how, polls: polling.polls });
    });
    polling.running = undefined;
    if (next.is === "wait") polling.restsUntil = performance.now() + (next.restMs ?? 0);
    const { again } = polling;
    polling.again = undefined;
    if (again) return begin(pollKey, again);
    if (next.is === "wait") later(pollKey, polling, next.ms, { always: false, known: next.known });
    else polled.delete(pollKey);
  }

  /** False where another worker has taken it. */
  async function keep(pollKey: string, polling: Polling, forMs: number): Promise<boolean> {
    const at = performance.now();
    try {
      const isOurs = await polls.keep([pollKey], workerId, forMs);
      if (isOurs) polling.leasedAt = at;
      return isOurs;
    } catch (error) {
      log.debug("poll.not-kept", { pollKey, why: messageOf(error) });
      return false;
    }
  }

  /** A lease that would run out before the next poll is renewed, also while a poll takes long. */
  async function renewing(
    pollKey: string,
    polling: Polling,
    poll: () => Promise<Polled>,
  ): Promise<Polled> {
    const ms = leaseMs();
    const leasedMs = () => performance.now() - polling.leasedAt;
    const renewal = setInterval(() => {
      if (leasedMs() > ms / 2) void keep(pollKey, polling, ms);
    }, ms / 4);
    try {
      const next = await poll();
      if (next.is !== "wait" || leasedMs() + next.ms <= ms * 0.9) return next;
      const isOurs = await keep(pollKey, polling, next.ms + ms);
      return isOurs ? next : { is: "wait", ms: next.ms };
    } catch (error) {
      log.warn("poll.failed", { pollKey, why: messageOf(error) });
      return { is: "wait", ms };
    } finally {
      clearInterval(renewal);
    }
  }

  return {
    async watch(pollKey, soon, known) {
      if (soon) begin(pollKey, { always: true, known });
      else if (!polled.has(pollKey)) await polls.expect(pollKey);
    },
    async look() {
      const room = most - running;
      if (room <= 0) return;
      for (const pollKey of await polls.takeOver(workerId, leaseMs(), room))
        begin(pollKey, { always: false });
    },
    async close(deadlineMs) {
      isClosed = true;
      for (const { timer } of polled.values()) clearTimeout(timer);
      const underWay = [...polled.values()].flatMap((polling) => polling.running ?? []);
      await within(deadlineMs, Promise.all(underWay), () => undefined);
      await polls.keep([...polled.keys()], workerId, 0).catch(() => undefined);
    },
  };
}
