import { randomBytes } from "node:crypto";
import path from "node:path";
import type { Message } from "../messages/blocks.ts";
import { observeAlive, startHeartbeat } from "../queue/heartbeat.ts";
import { repeatHere } from "../redis/repeat.ts";
import { type PendingWork, startPendingWork } from "../queue/pending-work.ts";
import type { PendingQueue } from "../queue/queues.ts";
import { requestable } from "../registry/define.ts";
import { createDurability } from "../core/request/durability.ts";
import { checkLedger, openLedger, removeOldLedgers } from "../core/request/ledger.ts";
import type { StoredRequest } from "../core/request/stored-request.ts";
import { createShares } from "../core/perform/fair-shares.ts";
import { stepWork } from "../core/perform/perform.ts";
import { pollWork } from "../core/perform/poll.ts";
import { lateLookWork } from "../core/perform/late-look.ts";
import { sweep } from "../core/perform/sweep.ts";
import type { WorkerContext } from "../core/perform/worker-context.ts";
import type { Services } from "./services.ts";
import { createStorageWatch } from "./watch-storage.ts";
import { startWorkerSchedules } from "./worker-schedules.ts";

const drainMs = 6000;
const concurrency = 20;
/** How many reads run at a time, each for all requests that wait for it. */
const pollsAtOnce = 10;
/** How long polls may continue while the process stops (ms). */
const pollsEndMs = 1500;

type Process = "config" | "log" | "opened" | "taking" | "policyKeeper" | "at";
type Stored =
  | "redis"
  | "key"
  | "connected"
  | "redisCheckNow"
  | "queues"
  | "store"
  | "polls"
  | "snapshots";
type Asked = "compute" | "appraiser" | "projectName" | "people" | "identity";
type Parts = "commands" | "features" | "announce" | "announceIn";

/** Performs requests, and does what one worker does for all. */
export async function startWorker(
  on: Pick<Services, Process | Stored | Asked | Parts> & Parameters<typeof startWorkerSchedules>[0],
): Promise<void> {
  const { config, log, key, redis, store, queues, opened } = on;
  const { timing } = config.policy;
  const workerId = `w-${randomBytes(6).toString("hex")}`;
  const ledgers = path.join(config.dataDir, "ledger");
  const ledger = opened(await openLedger(ledgers, workerId));
  const removed = await removeOldLedgers(ledgers, Math.min(Date.now(), await store.now()));
  if (removed.length > 0) log.info("ledger.old-removed", { count: removed.length });
  for (const line of ledger.torn) {
    log.warn("ledger.torn-line", { ...line });
    await store.note({ what: "ledger-torn", ...line });
  }
  const check = () => checkLedger(ledger, store, log);
  await check();
  // Redis may come back with older data, so it is compared with the ledger again.
  redis.on("ready", () => {
    check().catch((error: unknown) => log.warn("ledger.unchecked", { error }));
  });
  const heartbeat = opened(
    await startHeartbeat({ redis, key, log, workerId, beatMs: timing.heartbeatMs }),
  );
  const durability = createDurability({
    redis: await on.connected("waits"),
    key,
    replicas: config.redisReplicas,
    allowVolatile: config.allowVolatileRedis,
    waitMs: Math.round(0.75 * timing.claimWindowMs),
    log,
  });
  const lasting = {
    log,
    store,
    at: on.at,
    polls: on.polls,
    compute: on.compute,
    appraiser: on.appraiser,
    snapshots: on.snapshots,
    projectName: on.projectName,
    ledger,
    commands: requestable(on.commands),
    standstill: on.policyKeeper.standstill,
    person: on.people.person,
    workerId,
    isAlive: observeAlive(heartbeat.isAlive, timing.heartbeatMs),
    calling: new Set<string>(),
    shares: createShares(concurrency),
    sendingSince: new Map<string, number>(),
    unsent: new Set<string>(),
    durabilityProblem: durability.keep,
  } satisfies Omit<WorkerContext, "policy" | "policyVersion" | "ourTeamId">;
  /** Each step is performed by the policy that was in force when it began. */
  const contextNow = (): WorkerContext => ({
    ...lasting,
    ...config.policyFile.inForce,
    get ourTeamId() {
      return on.identity.known().teamId;
    },
  });
  const work = async (works: readonly PendingWork[], queue: PendingQueue, atOnce: number) =>
    startPendingWork(works, {
      queue,
      wake: queues.wake,
      connection: await on.connected("worker"),
      prefix: key.prefix,
      concurrency: atOnce,
      heartbeatMs: timing.heartbeatMs,
      log,
    });
  const steps = [
    stepWork(store.steps, contextNow),
    ...on.features.work.inWorkers.map(({ pending, handle }) => ({
      pending,
      handle: async (id: string, mark: string) => handle(id, mark, contextNow()),
    })),
  ];
  const jobs = await work(steps, queues.requests, concurrency);
  opened({ close: () => jobs.close(drainMs) });
  on.taking.add(jobs);
  const tellOf = async ({ record, delivered }: StoredRequest, message: Message) => {
    const { channelId, ts } = delivered.card ?? {};
    const place = channelId && ts ? { channelId, threadTs: ts } : { channelId: record.channelId };
    await on.announce({ id: `late-effect:${record.id}`, ...place, message });
  };
  const looks = [pollWork(contextNow), lateLookWork(contextNow, tellOf)];
  const polling = await work(looks, queues.polls, pollsAtOnce);
  for (const { pending } of looks) queues.assignHere(pending.kind, polling.handleHere);
  opened({ close: () => polling.close(pollsEndMs) });
  on.taking.add(polling);
  async function sweepAll(): Promise<void> {
    await sweep(contextNow());
    for (const { pending, openIds } of on.features.work.inWorkers)
      await pending.restore(await openIds());
  }
  const everyHere = (everyMs: number, name: string, task: () => Promise<unknown>) =>
    opened(repeatHere(name, everyMs, task, log));
  // Each worker judges by its own clock which claims are dead.
  const sweeping = everyHere(timing.sweepMs, "sweep", sweepAll);
  // Requests that waited under the former policy are canceled at once, as the audit channel was
  // told.
  on.policyKeeper.onChanged(() => void sweeping.now());
  // Redis may be emptied without a reconnect.
  everyHere(timing.sweepMs, "ledger", () => checkLedger(ledger, store, log, 200));
  everyHere(timing.sweepMs, "storage", createStorageWatch({ ...on, now: store.now }));
  await startWorkerSchedules(on);
}
