import { DelayedError, type Job, type Queue } from "bullmq";
import { deadlineMs, within } from "../deadline.ts";
import { UserError, messageOf } from "../errors.ts";
import type { Log } from "../log/log.ts";
import { type Keys, type RedisClient, redisTrouble, writeRefusal } from "../redis/redis.ts";
import { repeatHere } from "../redis/repeat.ts";
import type { InteractionJob, StoredInteraction } from "./queues.ts";
import { startQueueWorker } from "./queue-worker.ts";

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

/**
 * How long a delivery is remembered. It may be dated up to 300 s ahead, and redelivered until 300 s
 * after that.
 */
const seenForMs = 11 * 60_000;
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

export type Interactions = ReturnType<typeof createInteractions>;

/**
 * Keeps interactions from before their acknowledgment until they are handled. Each one is a delayed
 * job, which works as a dead man's switch:
 *
 *     stored, delayed ──► acknowledged ──► handled ──► removed
 *           │                   └── its gateway delays it further with each heartbeat
 *           └──► due, because its gateway died: another gateway handles it
 *
 * The key `seen:<id>` decides which copy of a delivery is handled. Its value is `stored`, `left`
 * once the gateway leaves the interaction to another, or `handled`. With `handled`, a job that a
 * copy or a failover brought back is dropped. Each heartbeat renews its expiry, so that it tells by
 * Redis's clock whether the gateway lives: BullMQ makes jobs due by the clock of any process that
 * looks for some, and a clock that has just stepped ahead makes all of them due.
 */
export function createInteractions(options: InteractionsOptions) {
  const { queue, redis, key, heartbeatMs, log, storeWithinMs = 1_000 } = options;
  const { staleAfterMs = 10 * 60_000, now = Date.now } = options;
  const deadAfterMs = deadAfterBeats * heartbeatMs;
  const inHand = new Map<string, { interaction: StoredInteraction; isHandled: boolean }>();
  /** IDs of interactions that Redis may have stored without confirming it. */
  const unclear = new Set<string>();
  const seenKey = (id: string) => key("seen", id);

  const add = (interaction: StoredInteraction): Promise<Job<InteractionJob>> =>
    queue.add(
      interaction.kind,
      { interaction },
      {
        jobId: jobIdOf(interaction.id),
        delay: deadAfterMs,
        timestamp: now(),
        // The job is the only copy. When Redis interrupts it, it is tried again until it is too
        // late.
        attempts: Math.ceil(staleAfterMs / heartbeatMs),
        backoff: { type: "fixed", delay: heartbeatMs },
      },
    );

  /** Lets another gateway handle this one at once, unless one has done so. */
  async function leave(id: string): Promise<void> {
    const seen = seenKey(id);
    if ((await redis.get(seen)) === "stored") await redis.set(seen, "left", "PX", seenForMs, "XX");
  }

  /**
   * How long the gateway of an interaction still counts as alive (ms). 0 when it is dead, or when
   * it left the interaction to others.
   */
  async function aliveForMs(id: string, mark: string | null): Promise<number> {
    if (mark !== "stored") return 0;
    const sinceBeatMs = seenForMs - (await redis.pttl(seenKey(id)));
    return Math.max(0, deadAfterMs - sinceBeatMs);
  }

  const markHandled = (id: string) => redis.set(seenKey(id), "handled", "PX", seenForMs);

  async function claim(interaction: StoredInteraction, isKept: boolean): Promise<string | null> {
    // When the gateway dies between the two commands, a copy of the delivery adds the job.
    const adding = isKept ? add(interaction) : undefined;
    // When Redis is down, the other command fails first and reports it.
    adding?.catch(() => undefined);
    const seen = seenKey(interaction.id);
    const before = await redis.set(seen, "stored", "PX", seenForMs, "NX", "GET");
    try {
      await adding;
    } catch (error) {
      // The mark is removed so that the next try, such as a form submitted again, doesn't count as
      // a copy.
      if (before === null && isRefused(error)) await redis.del(seen);
      throw error;
    }
    return before;
  }

  /**
   * Stores an interaction before its acknowledgment. Resolves with `seen` when it is another copy
   * of a delivery. With `isKept: false` it is only marked as seen. Throws NotStored within about a
   * second when Redis doesn't answer, and UserError when the interaction is too large.
   */
  async function store(
    interaction: StoredInteraction,
    { isKept = true } = {},
  ): Promise<"new" | "seen"> {
    if (isKept && Buffer.byteLength(JSON.stringify(interaction)) > maxBytes)
      throw new UserError("That message is too long.", "Nothing was done.");
    try {
      const before = await within(
        deadlineMs(storeWithinMs),
        claim(interaction, isKept),
        (): never => {
          throw new Error("Command timed out");
        },
      );
      if (before === null && isKept) inHand.set(interaction.id, { interaction, isHandled: false });
      // Storing this copy added the job again.
      if (before === "handled" && isKept) await finish(interaction);
      return before === null ? "new" : "seen";
    } catch (error) {
      log.warn("interaction.not-stored", { error: messageOf(error), kind: interaction.kind });
      const failure = new NotStored(error);
      if (failure.mayRun && isKept) unclear.add(interaction.id);
      throw failure;
    }
  }

  /**
   * Records that the interaction is handled, so that no other gateway handles it. Never throws;
   * what Redis doesn't take now is repeated with the next heartbeat.
   */
  async function finish(interaction: StoredInteraction): Promise<void> {
    unclear.delete(interaction.id);
    inHand.set(interaction.id, { interaction, isHandled: true });
    await settle(interaction.id).catch((error: unknown) =>
      log.warn("interaction.not-removed", { error: messageOf(error), left: inHand.size }),
    );
  }

  /**
   * Forgets an interaction that was refused without any effect, so that the same delivery may come
   * again.
   */
  async function forget({ id }: StoredInteraction): Promise<void> {
    inHand.delete(id);
    // Both are sent at once, so that they arrive before a corrected form with the same ID.
    await Promise.all([redis.del(seenKey(id)), queue.remove(jobIdOf(id))]).catch((error: unknown) =>
      log.warn("interaction.not-removed", { error: messageOf(error), left: inHand.size }),
    );
  }

  /**
   * How far to delay a job. BullMQ computes it from this process's clock, which may differ from
   * Redis's. A clock that is far ahead can't delay by less than it is ahead.
   */
  const putOffMs = (): number => Math.max(1, deadAfterMs + now() - Date.now());

  /** Removes the job of an interaction that is handled, and delays the job of one that isn't. */
  async function settle(id: string): Promise<void> {
    const held = inHand.get(id);
    if (!held) return;
    if (held.isHandled) {
      // When another gateway runs the job, because this one was too slow, that gateway removes it.
      await Promise.all([markHandled(id), queue.remove(jobIdOf(id))]);
      if (inHand.get(id) === held) inHand.delete(id);
      return;
    }
    const [job] = await Promise.all([
      queue.getJob(jobIdOf(id)),
      redis.pexpire(seenKey(id), seenForMs),
    ]);
    // The job was stored and acknowledged, but a failover lost it.
    if (!job) {
      // A refused form has its job removed on purpose (`forget`), so that it may come again.
      if (inHand.get(id) === held) await add(held.interaction);
      return;
    }
    await job.changeDelay(putOffMs()).catch(unlessActive(job));
  }

  /**
   * Makes a job due now that Redis stored without confirming it. If the person tries again
   * meanwhile, that counts as the same request.
   */
  async function hurry(id: string): Promise<void> {
    const [job] = await Promise.all([queue.getJob(jobIdOf(id)), leave(id)]);
    unclear.delete(id);
    await job?.promote().catch(unlessActive(job));
  }

  const notPutOff = (error: unknown) =>
    log.warn("interaction.not-put-off", { error: messageOf(error), left: inHand.size });

  async function beat(): Promise<void> {
    // All run at once: one that fails or waits for Redis must not prevent the others from being
    // delayed.
    await Promise.all([...inHand.keys()].map((id) => settle(id).catch(notPutOff)));
    await Promise.all([...unclear].map((id) => hurry(id).catch(notPutOff)));
  }
  const beating = repeatHere("interactions", heartbeatMs, beat, log);

  return {
    store,
    finish,
    forget,
    /**
     * Handles what dead gateways left, once `take` was called on the result. `handle` must never
     * throw. With `givenUp`, it only tells the person: the interaction is older than `staleAfterMs`,
     * or a second gateway died while it handled this one.
     */
    startRecovering(place: {
      connection: RedisClient;
      handle(interaction: StoredInteraction, how: { givenUp: GivenUp | undefined }): Promise<void>;
    }) {
      return startQueueWorker({
        queue,
        connection: place.connection,
        prefix: key.prefix,
        heartbeatMs,
        concurrency: atOnce,
        log,
        subjectOf: ({ id, name }) => ({ job: id, kind: name }),
        async process(job, token) {
          const { interaction } = job.data;
          const { id, kind } = interaction;
          const mark = await redis.get(seenKey(id));
          if (mark === "handled") return;
          // This gateway is slow, but not dead.
          const waitMs = inHand.has(id) ? deadAfterMs : await aliveForMs(id, mark);
          if (waitMs > 0) {
            await job.moveToDelayed(now() + waitMs, token);
            throw new DelayedError();
          }
          const isTooLate = now() - job.timestamp > staleAfterMs;
          const isInterrupted = job.stalledCounter >= mostRecoveries;
          const givenUp = isTooLate ? "too-late" : isInterrupted ? "interrupted" : undefined;
          if (givenUp) log.error("interaction.given-up", { interaction: id, kind, why: givenUp });
          else log.info("interaction.recovered", { interaction: id, kind });
          await place.handle(interaction, { givenUp });
          await finish(interaction);
        },
      });
    },
    /**
     * Stops delaying jobs, and makes those that aren't handled due at once, for another gateway.
     */
    async close(): Promise<void> {
      await beating.close();
      await beat();
      for (const id of inHand.keys()) {
        await leave(id).catch(() => undefined);
        const job = await queue.getJob(jobIdOf(id)).catch(() => undefined);
        await job?.promote().catch(() => undefined);
      }
    },
  };
}

/** A job that another gateway runs can be neither removed nor delayed, and doesn't need to be. */
const unlessActive = (job: Job) => async (error: unknown) => {
  if (!(await job.isActive())) throw error;
};

/** BullMQ allows no colons in a job's ID. */
const jobIdOf = (id: string): string => id.replaceAll(":", "/");
