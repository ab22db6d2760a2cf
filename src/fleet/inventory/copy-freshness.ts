import { setTimeout as delay } from "node:timers/promises";
import { deadlineMs } from "../../deadline.ts";
import { UserError, messageOf } from "../../errors.ts";
import type { Log } from "../../log/log.ts";
import type { RedisClient } from "../../redis/redis.ts";
import type { FleetRefresh } from "./refresh.ts";
import type { Replica } from "./replica.ts";

/** Redis is read at most this often for questions (ms). */
const lookEveryMs = 500;
/**
 * How long a caller waits for the first names (ms). A slash command must be answered within three
 * seconds.
 */
const firstPatienceMs = 2_000;
/**
 * The age that data for programs may have (ms). Programs that ask every second cause one read per
 * `readForProgramsEveryMs`, in all processes together, whether it succeeds or not.
 */
const newForProgramsMs = 2_000;
const readForProgramsEveryMs = 10_000;
/** While nobody has read the service yet, one process tries again after this time (ms). */
const retryAfterMs = 10_000;

interface FreshnessOptions {
  redis: RedisClient;
  /** Builds a key in Redis. */
  key: (...parts: string[]) => string;
  replica: Replica;
  refresh: FleetRefresh;
  log: Log;
  /** Aborted when the process is closing. */
  signal: AbortSignal;
}

/** When this process's copy is compared with Redis, and when the service is read for a question. */
export class CopyFreshness {
  readonly #on: FreshnessOptions;
  #lookedAt = -Infinity;

  constructor(on: FreshnessOptions) {
    this.#on = on;
  }

  /** Whether the whole fleet was ever read. */
  isReady(): boolean {
    return this.#on.replica.head().refreshedAt !== undefined;
  }

  /** Throws a UserError when the fleet was never read, after a short wait. */
  async requireReady(): Promise<void> {
    await this.freshen();
    if (this.isReady()) return;
    throw new UserError(
      "The VMs aren't known yet: Gatehouse is still reading the list from the compute service.",
      "Try again in a moment. If this continues, `/gatehouse status` says what is wrong.",
    );
  }

  /** Compares the copy with Redis. Never rejects. */
  async look(): Promise<void> {
    const { replica, log } = this.#on;
    this.#lookedAt = performance.now();
    try {
      await replica.sync();
    } catch (error) {
      log.debug("inventory.redis-away", { reason: messageOf(error) });
    }
  }

  /** Looks at Redis in the background. Only the first look is waited for, and only briefly. */
  async freshen(): Promise<void> {
    const isOpen = () => !this.#on.signal.aborted;
    if (this.isReady()) {
      if (isOpen() && performance.now() - this.#lookedAt >= lookEveryMs) void this.look();
      return;
    }
    const until = performance.now() + deadlineMs(firstPatienceMs);
    while (isOpen() && !this.isReady() && performance.now() < until)
      await Promise.race([Promise.all([this.look(), pause(50)]), pause(until - performance.now())]);
  }

  /**
   * When nobody has read the service yet, this process does, so that a gateway knows names before a
   * worker is running.
   */
  async lookOrRead(): Promise<void> {
    const { redis, key, replica, refresh } = this.#on;
    await this.look();
    if (this.isReady() || !replica.isReachable()) return;
    const first = redis.set(key("inventory", "first"), "held", "PX", retryAfterMs, "NX");
    if ((await first) !== null) await refresh.run();
  }

  /**
   * Whether a program's question may cause another read of the service. False without Redis, where
   * it isn't known whether another process has just read it.
   */
  async isDueForPrograms(): Promise<boolean> {
    const { redis, key, replica } = this.#on;
    const { refreshedAt } = replica.head();
    // A time in the future is from before Redis's clock was set back.
    const ageMs = refreshedAt === undefined ? Infinity : Math.abs(Date.now() - refreshedAt);
    if (ageMs < newForProgramsMs) return false;
    const lease = key("inventory", "for-programs");
    const taken = redis.set(lease, "held", "PX", readForProgramsEveryMs, "NX");
    return (await taken.catch(() => null)) !== null;
  }
}

const pause = (ms: number) => delay(Math.max(0, ms), undefined, { ref: false });
