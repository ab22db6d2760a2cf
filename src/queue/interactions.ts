import { DelayedError, type Job, type Queue } from "bullmq";
import { deadlineMs, within } from "../deadline.ts";
import { UserError, messageOf } from "../errors.ts";
import type { Log } from "../log/log.ts";
import { type Keys, type RedisClient, redisTrouble, writeRefusal } from "../redis/redis.ts";
import { repeatHere } from "../redis/repeat.ts";
import type { InteractionJob, StoredInteraction } from "./queues.ts";
import { startQueueWorker } from "./queue-worker.ts";
import { type SeenMarks, createSeenMarks } from "./seen-marks.ts";

/**
 * The interaction isn't known to be stored and isn't handled now. With `mayRun`, Redis may have
 * stored it nevertheless.
 */
export class NotStored extends UserError {
  readonly mayRun: boolean;

  constructor(why: unknown) {
    const mayRun = !isRefused(why);
    const words = mayRun
      ? "Gatehouse couldn't store this and doesn't know whether Redis did."
      : `${redisTrouble(why) ?? "Redis refused it"}: nothing was done.`;
    const hint = mayRun
      ? "If a card appears, it is running; `/gatehouse jobs` shows it. Otherwise try again."
      : "Try again in a minute.";
    super(words, hint);
    this.mayRun = mayRun;
  }
}

/** Whether Redis refused it or was never asked: a connection that isn't open takes no commands. */
function isRefused(error: unknown): boolean {
  return writeRefusal(error) !== undefined || messageOf(error).startsWith("Stream isn't writeable");
}

/** A gateway counts as dead when it hasn't put off its jobs for this many heartbeats. */
const deadAfterBeats = 5;
/**
 * What ends a gateway, such as too large an answer, would end the next one, too. So an interaction
 * is recovered once.
 */
const mostRecoveries = 1;
const maxBytes = 128 * 1024;
/** One is recovered at a time, so that the one that ends a gateway is told from its neighbors. */
const atOnce = 1;

interface InteractionsOptions {
  queue: Queue<InteractionJob>;
  redis: RedisClient;
  key: Keys;
  heartbeatMs: number;
  log: Log;
  /** The time by Redis's clock (ms), which other gateways follow, too. */
  now?: () => number;
  storeWithinMs?: number;
  /**
   * When the gateway of an interaction died, and the interaction is older than this, the person is
   * only told that it is too late.
   */
  staleAfterMs?: number;
}

/** Why an interaction is only answered, and not handled any more. */
export type GivenUp = "too-late" | "interrupted";

/** The gateway that takes over what dead ones left. */
interface Recovery {
  connection: RedisClient;
  handleAbandoned(
    interaction: StoredInteraction,
    how: { givenUp: GivenUp | undefined },
  ): Promise<void>;
}

/**
 * Keeps interactions from before their acknowledgment until they are handled. Each one is a delayed
 * job, which works as a dead man's switch:
 *
 *     stored, delayed ──► acknowledged ──► handled ──► removed
 *           │                   └── its gateway delays it further with each heartbeat
 *           └──► due, because its gateway died: another gateway handles it
 *
 * Marks (`createSeenMarks`) decide which copy of a delivery is handled, and drop a job that a copy
 * or a failover brought back. They also tell whether the gateway lives: BullMQ makes jobs due by the
 * clock of any process that looks for some, and a clock that has just stepped ahead makes all of
 * them due.
 */
export class Interactions {
  readonly #queue: Queue<InteractionJob>;
  readonly #seen: SeenMarks;
  readonly #options: InteractionsOptions;
  readonly #deadAfterMs: number;
  readonly #staleAfterMs: number;
  readonly #now: () => number;
  readonly #inHand = new Map<string, { interaction: StoredInteraction; isHandled: boolean }>();
  /** IDs of interactions that Redis may have stored without confirming it. */
  readonly #unclear = new Set<string>();
  readonly #beating: { close(): Promise<void> };

  constructor(options: InteractionsOptions) {
    const { queue, redis, key, heartbeatMs, log } = options;
    this.#options = options;
    this.#queue = queue;
    this.#seen = createSeenMarks(redis, key);
    this.#deadAfterMs = deadAfterBeats * heartbeatMs;
    this.#staleAfterMs = options.staleAfterMs ?? 10 * 60_000;
    this.#now = options.now ?? Date.now;
    this.#beating = repeatHere("interactions", heartbeatMs, () => this.#beat(), log);
  }

  // By the gateway that received it

  /**
   * Stores an interaction before its acknowledgment. Resolves with `seen` when it is another copy
   * of a delivery. With `isKept: false` it is only marked as seen. Throws NotStored within about a
   * second when Redis doesn't answer, and UserError when the interaction is too large.
   */
  async store(interaction: StoredInteraction, { isKept = true } = {}): Promise<"new" | "seen"> {
    if (isKept && Buffer.byteLength(JSON.stringify(interaction)) > maxBytes)
      throw new UserError("That message is too long.", "Nothing was done.");
    try {
      const before = await within(
        deadlineMs(this.#options.storeWithinMs ?? 1_000),
        this.#claim(interaction, isKept),
        (): never => {
          throw new Error("Command timed out");
        },
      );
      if (before === null && isKept)
        this.#inHand.set(interaction.id, { interaction, isHandled: false });
      // Storing this copy added the job again.
      if (before === "handled" && isKept) await this.finish(interaction);
      return before === null ? "new" : "seen";
    } catch (error) {
      this.#options.log.warn("interaction.not-stored", {
        error: messageOf(error),
        kind: interaction.kind,
      });
      const failure = new NotStored(error);
      if (failure.mayRun && isKept) this.#unclear.add(interaction.id);
      throw failure;
    }
  }

  /**
   * Records that the interaction is handled, so that no other gateway handles it. Never throws;
   * what Redis doesn't take now is repeated with the next heartbeat.
   */
  async finish(interaction: StoredInteraction): Promise<void> {
    this.#unclear.delete(interaction.id);
    this.#inHand.set(interaction.id, { interaction, isHandled: true });
    await this.#settle(interaction.id).catch((error: unknown) => this.#notRemoved(error));
  }

  /**
   * Forgets an interaction that was refused without any effect, so that the same delivery may come
   * again.
   */
  async forget({ id }: StoredInteraction): Promise<void> {
    this.#inHand.delete(id);
    // Both are sent at once, so that they arrive before a corrected form with the same ID.
    await Promise.all([this.#seen.remove(id), this.#queue.remove(jobIdOf(id))]).catch(
      (error: unknown) => this.#notRemoved(error),
    );
  }

  /**
   * Stops delaying jobs, and makes those that aren't handled due at once, for another gateway.
   */
  async close(): Promise<void> {
    await this.#beating.close();
    await this.#beat();
    for (const id of this.#inHand.keys()) {
      await this.#seen.markLeft(id).catch(() => undefined);
      const job = await this.#queue.getJob(jobIdOf(id)).catch(() => undefined);
      await job?.promote().catch(() => undefined);
    }
  }

  // By a gateway that found it

  /**
   * Handles what dead gateways left, once `take` was called on the result. `handleAbandoned` must never
   * throw. With `givenUp`, it only tells the person: the interaction is older than `staleAfterMs`,
   * or a second gateway died while it handled this one.
   */
  startRecovering({ connection, handleAbandoned }: Recovery) {
    const { key, heartbeatMs, log } = this.#options;
    return startQueueWorker({
      queue: this.#queue,
      connection,
      prefix: key.prefix,
      heartbeatMs,
      concurrency: atOnce,
      log,
      subjectOf: ({ id, name }) => ({ job: id, kind: name }),
      process: (job, token) => this.#recover(job, token, handleAbandoned),
    });
  }

  async #recover(
    job: Job<InteractionJob>,
    token: string | undefined,
    handleAbandoned: Recovery["handleAbandoned"],
  ): Promise<void> {
    const { log } = this.#options;
    const { interaction } = job.data;
    const { id, kind } = interaction;
    const mark = await this.#seen.markOf(id);
    if (mark === "handled") return;
    const waitMs = await this.#aliveForMs(id, mark);
    if (waitMs > 0) {
      await job.moveToDelayed(this.#now() + waitMs, token);
      throw new DelayedError();
    }
    const isTooLate = this.#now() - job.timestamp > this.#staleAfterMs;
    const isInterrupted = job.stalledCounter >= mostRecoveries;
    const givenUp = isTooLate ? "too-late" : isInterrupted ? "interrupted" : undefined;
    if (givenUp) log.error("interaction.given-up", { interaction: id, kind, why: givenUp });
    else log.info("interaction.recovered", { interaction: id, kind });
    await handleAbandoned(interaction, { givenUp });
    await this.finish(interaction);
  }

  /**
   * How long the gateway of an interaction still counts as alive (ms). 0 when it is dead, or when
   * it left the interaction to others.
   */
  async #aliveForMs(id: string, mark: string | null): Promise<number> {
    // This gateway is slow, but not dead.
    if (this.#inHand.has(id)) return this.#deadAfterMs;
    if (mark !== "stored") return 0;
    return Math.max(0, this.#deadAfterMs - (await this.#seen.sinceRenewedMs(id)));
  }

  // With each heartbeat

  async #beat(): Promise<void> {
    const { log } = this.#options;
    const notPutOff = (error: unknown) =>
      log.warn("interaction.not-put-off", { error: messageOf(error), left: this.#inHand.size });
    // All run at once: one that fails or waits for Redis must not prevent the others from being
    // delayed.
    await Promise.all([...this.#inHand.keys()].map((id) => this.#settle(id).catch(notPutOff)));
    await Promise.all([...this.#unclear].map((id) => this.#promoteUnclear(id).catch(notPutOff)));
  }

  /** Removes the job of an interaction that is handled, and delays the job of one that isn't. */
  async #settle(id: string): Promise<void> {
    const inHand = this.#inHand;
    const held = inHand.get(id);
    if (!held) return;
    if (held.isHandled) {
      // When another gateway runs the job, because this one was too slow, that gateway removes it.
      await Promise.all([this.#seen.markHandled(id), this.#queue.remove(jobIdOf(id))]);
      if (inHand.get(id) === held) inHand.delete(id);
      return;
    }
    const [job] = await Promise.all([this.#queue.getJob(jobIdOf(id)), this.#seen.renew(id)]);
    // The job was stored and acknowledged, but a failover lost it.
    if (!job) {
      // A refused form has its job removed on purpose (`forget`), so that it may come again.
      if (inHand.get(id) === held) await this.#add(held.interaction);
      return;
    }
    await job.changeDelay(this.#putOffMs()).catch(unlessActive(job));
  }

  /**
   * Makes a job due now that Redis stored without confirming it. If the person tries again
   * meanwhile, that counts as the same request.
   */
  async #promoteUnclear(id: string): Promise<void> {
    const [job] = await Promise.all([this.#queue.getJob(jobIdOf(id)), this.#seen.markLeft(id)]);
    this.#unclear.delete(id);
    await job?.promote().catch(unlessActive(job));
  }

  /**
   * How far to delay a job. BullMQ computes it from this process's clock, which may differ from
   * Redis's. A clock that is far ahead can't delay by less than it is ahead.
   */
  #putOffMs(): number {
    return Math.max(1, this.#deadAfterMs + this.#now() - Date.now());
  }

  async #claim(interaction: StoredInteraction, isKept: boolean): Promise<string | null> {
    const { id } = interaction;
    // When the gateway dies between the two commands, a copy of the delivery adds the job.
    const adding = isKept ? this.#add(interaction) : undefined;
    // When Redis is down, the other command fails first and reports it.
    adding?.catch(() => undefined);
    const before = await this.#seen.markStored(id);
    try {
      await adding;
    } catch (error) {
      // The mark is removed so that the next try, such as a form submitted again, doesn't count as
      // a copy.
      if (before === null && isRefused(error)) await this.#seen.remove(id);
      throw error;
    }
    return before;
  }

  #add(interaction: StoredInteraction): Promise<Job<InteractionJob>> {
    const { heartbeatMs } = this.#options;
    return this.#queue.add(
      interaction.kind,
      { interaction },
      {
        jobId: jobIdOf(interaction.id),
        delay: this.#deadAfterMs,
        timestamp: this.#now(),
        // The job is the only copy. When Redis interrupts it, it is tried again until it is too
        // late.
        attempts: Math.ceil(this.#staleAfterMs / heartbeatMs),
        backoff: { type: "fixed", delay: heartbeatMs },
      },
    );
  }

  #notRemoved(error: unknown): void {
    const left = this.#inHand.size;
    this.#options.log.warn("interaction.not-removed", { error: messageOf(error), left });
  }
}

/** A job that another gateway runs can be neither removed nor delayed, and doesn't need to be. */
const unlessActive = (job: Job) => async (error: unknown) => {
  if (!(await job.isActive())) throw error;
};

/** BullMQ allows no colons in a job's ID. */
const jobIdOf = (id: string): string => id.replaceAll(":", "/");
