import { DelayedError, type Job, type Queue } from "bullmq";
import { within } from "../deadline.ts";
import { UserError, messageOf } from "../errors.ts";
import type { Log } from "../log/log.ts";
import { type Keys, type RedisClient, redisTrouble, writeRefusal } from "../redis/redis.ts";
import { repeatHere } from "../redis/repeat.ts";
import type { InteractionJob, StoredInteraction } from "./queues.ts";
import { startQueueWorker } from "./queue-worker.ts";

/** It isn't known to be stored, and it isn't handled now. `mayRun`: Redis may have it all the same. */
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

/** Redis said no, or was never asked: a connection that isn't open takes no commands. */
function isRefused(error: unknown): boolean {
  return writeRefusal(error) !== undefined || messageOf(error).startsWith("Stream isn't writeable");
}

/** A delivery may be dated 300 s ahead and redelivered until 300 s after that. */
const seenForMs = 11 * 60_000;
/** A gateway that put its jobs off for so many heartbeats no more is dead. */
const deadAfterBeats = 5;
/** After so many gateways died while they recovered one interaction, nobody tries again. */
const mostRecoveries = 3;
const maxBytes = 128 * 1024;
const atOnce = 20;

interface InteractionsOptions {
  queue: Queue<InteractionJob>;
  redis: RedisClient;
  key: Keys;
  heartbeatMs: number;
  log: Log;
  /** The time by Redis's clock (ms): other gateways go by it. */
  now?: () => number;
  storeWithinMs?: number;
  /** Older than this, an interaction of a dead gateway is only told to be too late. */
  staleAfterMs?: number;
}

export type Interactions = ReturnType<typeof createInteractions>;

/**
 * Interactions from before their acknowledgment until they are handled: each is a delayed job, a dead man's switch.
 *
 *     stored, delayed ──► acknowledged ──► handled ──► removed
 *           │                   └── its gateway puts it off with each heartbeat
 *           └──► due, as its gateway died: another gateway handles it
 *
 * `seen:<id>` decides who handles a copy of a delivery. It is `stored`, or `handled`: then a job that a copy, or a failover, brought
 * back is dropped.
 */
export function createInteractions(options: InteractionsOptions) {
  const { queue, redis, key, heartbeatMs, log, storeWithinMs = 1_000 } = options;
  const { staleAfterMs = 10 * 60_000, now = Date.now } = options;
  const deadAfterMs = deadAfterBeats * heartbeatMs;
  const inHand = new Map<string, { interaction: StoredInteraction; isHandled: boolean }>();
  /** Redis didn't say whether it stored these. */
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
        // Nobody else has it: one that Redis interrupts comes again, until it is too late
        attempts: Math.ceil(staleAfterMs / heartbeatMs),
        backoff: { type: "fixed", delay: heartbeatMs },
      },
    );

  const markHandled = (id: string) => redis.set(seenKey(id), "handled", "PX", seenForMs);

  async function claim(interaction: StoredInteraction, isKept: boolean): Promise<string | null> {
    // Where the gateway dies between the two, a copy of the delivery adds the job
    const adding = isKept ? add(interaction) : undefined;
    // Where Redis is away, the other one says so sooner
    adding?.catch(() => undefined);
    const seen = seenKey(interaction.id);
    const before = await redis.set(seen, "stored", "PX", seenForMs, "NX", "GET");
    try {
      await adding;
    } catch (error) {
      // It must not count as a copy when it comes again, as a form does
      if (before === null && isRefused(error)) await redis.del(seen);
      throw error;
    }
    return before;
  }

  /**
   * Stores an interaction before its acknowledgment; `seen`: it is another copy. What isn't to be kept is only marked as seen.
   * Throws NotStored within about a second when Redis doesn't answer, and UserError when it is too large.
   */
  async function store(
    interaction: StoredInteraction,
    { isKept = true } = {},
  ): Promise<"new" | "seen"> {
    if (isKept && Buffer.byteLength(JSON.stringify(interaction)) > maxBytes)
      throw new UserError("That message is too long.", "Nothing was done.");
    try {
      const before = await within(storeWithinMs, claim(interaction, isKept), (): never => {
        throw new Error("Command timed out");
      });
      if (before === null && isKept) inHand.set(interaction.id, { interaction, isHandled: false });
      // Its copy brought the job back
      if (before === "handled" && isKept) await finish(interaction);
      return before === null ? "new" : "seen";
    } catch (error) {
      log.warn("interaction.not-stored", { error: messageOf(error), kind: interaction.kind });
      const failure = new NotStored(error);
      if (failure.mayRun && isKept) unclear.add(interaction.id);
      throw failure;
    }
  }

  /** Handled: nobody else needs to. Never throws; what Redis doesn't take now it is asked again. */
  async function finish(interaction: StoredInteraction): Promise<void> {
    unclear.delete(interaction.id);
    inHand.set(interaction.id, { interaction, isHandled: true });
    await settle(interaction.id).catch((error: unknown) =>
      log.warn("interaction.not-removed", { error: messageOf(error), left: inHand.size }),
    );
  }

  /** Refused, and nothing was done: the same delivery may come again. */
  async function forget({ id }: StoredInteraction): Promise<void> {
    inHand.delete(id);
    // Both leave now, so before a corrected form comes, which has the same ID
    await Promise.all([redis.del(seenKey(id)), queue.remove(jobIdOf(id))]).catch((error: unknown) =>
      log.warn("interaction.not-removed", { error: messageOf(error), left: inHand.size }),
    );
  }

  /** BullMQ reckons from this process's clock. One that is far ahead can't put off by less than it is ahead. */
  const putOffMs = (): number => Math.max(1, deadAfterMs + now() - Date.now());

  /** Removes the job of what is handled, and puts off that of what isn't. */
  async function settle(id: string): Promise<void> {
    const held = inHand.get(id);
    if (!held) return;
    if (held.isHandled) {
      // It stays where another gateway runs it, as this one was too slow: that one removes it
      await Promise.all([markHandled(id), queue.remove(jobIdOf(id))]);
      if (inHand.get(id) === held) inHand.delete(id);
      return;
    }
    const job = await queue.getJob(jobIdOf(id));
    // It was acknowledged, and a failover lost it
    if (!job) {
      // A refused form takes its job away on purpose, so that it may come again
      if (inHand.get(id) === held) await add(held.interaction);
      return;
    }
    await job.changeDelay(putOffMs()).catch(unlessActive(job));
  }

  /** What Redis stored although it didn't say so is handled now: whoever tries again meanwhile asks for the same. */
  async function hurry(id: string): Promise<void> {
    const job = await queue.getJob(jobIdOf(id));
    unclear.delete(id);
    await job?.promote().catch(unlessActive(job));
  }

  const notPutOff = (error: unknown) =>
    log.warn("interaction.not-put-off", { error: messageOf(error), left: inHand.size });

  async function beat(): Promise<void> {
    // At once: one that fails or waits for Redis must not keep the others from being put off
    await Promise.all([...inHand.keys()].map((id) => settle(id).catch(notPutOff)));
    await Promise.all([...unclear].map((id) => hurry(id).catch(notPutOff)));
  }
  const beating = repeatHere("interactions", heartbeatMs, beat, log);

  return {
    store,
    finish,
    forget,
    /**
     * Handles what dead gateways left, once it is told to `take` it. `handle` never throws. What is older than `staleAfterMs`, or
     * had three gateways die while they recovered it, comes as too late.
     */
    startRecovering(place: {
      connection: RedisClient;
      handle(interaction: StoredInteraction, how: { isTooLate: boolean }): Promise<void>;
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
          if ((await redis.get(seenKey(id))) === "handled") return;
          if (inHand.has(id)) {
            // Its own gateway is slow, not dead
            await job.moveToDelayed(Date.now() + deadAfterMs, token);
            throw new DelayedError();
          }
          const isTooLate =
            job.stalledCounter >= mostRecoveries || now() - job.timestamp > staleAfterMs;
          if (isTooLate) log.error("interaction.too-late", { interaction: id, kind });
          else log.info("interaction.recovered", { interaction: id, kind });
          await place.handle(interaction, { isTooLate });
          await finish(interaction);
        },
      });
    },
    /** Puts nothing off any more, and leaves what isn't handled to another gateway at once. */
    async close(): Promise<void> {
      await beating.close();
      await beat();
      for (const id of inHand.keys()) {
        const job = await queue.getJob(jobIdOf(id)).catch(() => undefined);
        await job?.promote().catch(() => undefined);
      }
    },
  };
}

/** A job that another gateway runs can be neither removed nor put off, and needn't be. */
const unlessActive = (job: Job) => async (error: unknown) => {
  if (!(await job.isActive())) throw error;
};

/** BullMQ takes no colons in it. */
const jobIdOf = (id: string): string => id.replaceAll(":", "/");
