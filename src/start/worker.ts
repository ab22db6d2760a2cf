import { randomBytes } from "node:crypto";
import path from "node:path";
import { commands } from "../commands/index.ts";
import { createDigests, createPostDue } from "../digests/create-digests.ts";
import { monitorDrift } from "../digests/drift-monitor.ts";
import { monitorStatuses } from "../digests/status-monitor.ts";
import { createAlarms } from "../digests/watch.ts";
import { placesOf } from "../policy/scope.ts";
import { requestsForDigest } from "../digests/requests.ts";
import type { Services } from "./services.ts";
import { startQueueProbe, startHeartbeat, observeAlive } from "../jobs/liveness.ts";
import { startDispatcher } from "../redis/dispatcher.ts";
import { startRounds } from "../redis/rounds.ts";
import { startWorkers } from "../jobs/queues.ts";
import type { Message } from "../messages/message.ts";
import { createDurability } from "../requests/journal/durability.ts";
import { checkLedger, openLedger, removeOldLedgers } from "../requests/journal/ledger.ts";
import { createShares, type WorkerContext } from "../requests/perform/worker-context.ts";
import { lookForLateEffects, resendOwn, sweep } from "../requests/perform/sweep.ts";
import { advance } from "../requests/perform/perform.ts";
import type { StoredRequest } from "../requests/journal/record.ts";
import { pollWork } from "../requests/perform/poll.ts";
import { advanceRollout, type RolloutContext } from "../rollouts/advance-rollout.ts";
import { isRolloutId } from "../rollouts/rollout.ts";
import { requestable } from "../registry/define.ts";

const drainMs = 6000;
const concurrency = 20;
/** What is left of the time to stop in, once no request is being worked on. */
const pollsEndMs = 1500;
/** How late a digest may be for its time. */
const dueEveryMs = 5_000;
/** Lease of a digest in longest calls: usually a minute. */
const leaseInCalls = 4;

/** Performs requests. `onDead` is called when the queue stalls. */
export async function startWorker(on: Services, onDead: (why: string) => void): Promise<void> {
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
  // Redis may come back with older data: compare with the ledger again
  redis.on("ready", () => {
    check().catch((error: unknown) => log.warn("ledger.unchecked", { error }));
  });
  const heartbeat = opened(
    await startHeartbeat({ redis, key, workerId, beatMs: timing.heartbeatMs, log }),
  );
  const durability = createDurability({
    redis: await on.connected("waits"),
    key,
    replicas: config.redisReplicas,
    waitMs: Math.round(0.75 * timing.claimWindowMs),
    log,
  });
  const lasting = {
    store,
    ledger,
    compute: on.compute,
    appraiser: on.appraiser,
    commands: requestable(commands),
    standstill: on.policyKeeper.standstill,
    person: (id, teamId) => on.people.person(id, teamId),
    projectName: on.projectName,
    workerId,
    isAlive: observeAlive(heartbeat.isAlive, timing.heartbeatMs),
    wake: (id) => queues.wake(id),
    polls: on.polls,
    mine: new Set<string>(),
    calling: new Set<string>(),
    shares: createShares(concurrency),
    sendingSince: new Map<string, number>(),
    unsent: new Set<string>(),
    durable: durability.keep,
    log,
    at: on.at,
  } satisfies Omit<WorkerContext, "policy" | "policyVersion" | "ourTeamId">;
  /** Each step begins with the rules of its moment and keeps them. */
  const contextNow = (): WorkerContext => ({
    ...lasting,
    ...config.policyFile.inForce,
    get ourTeamId() {
      return on.identity.known().teamId;
    },
  });
  const rolling = (): RolloutContext => ({
    rollouts: on.rollouts,
    workerContext: contextNow(),
    at: on.at,
  });
  const queueProbe = opened(
    startQueueProbe({ workerId, everyMs: timing.canaryMs, send: queues.queueProbe, onDead }),
  );
  const jobs = startWorkers({
    connection: await on.connected("worker"),
    prefix: key.prefix,
    concurrency,
    // Its death is noticed later than that
    lookMs: 2 * timing.heartbeatMs,
    advance: (id) => (isRolloutId(id) ? advanceRollout(id, rolling()) : advance(id, contextNow())),
    heard: queueProbe.heard,
    log,
  });
  opened({ close: () => jobs.close(drainMs) });
  jobs.begin();
  const everyMs = () => config.policy.timing.heartbeatMs;
  const polling = startDispatcher([pollWork(contextNow)], { everyMs, log });
  opened({ close: () => polling.close(pollsEndMs) });
  const tellOf = async ({ record, delivered }: StoredRequest, message: Message) => {
    const { channelId, ts } = delivered.card ?? {};
    const place = channelId && ts ? { channelId, threadTs: ts } : { channelId: record.channelId };
    await on.announce({ id: `late-effect:${record.id}`, ...place, message });
  };
  async function sweepAll(): Promise<void> {
    await sweep(contextNow());
    for (const id of await on.rollouts.openIds()) await queues.wake(id);
  }
  const sweeping = startRounds("sweep", timing.sweepMs, sweepAll, log);
  // What waited under the former policy is canceled at once, as the audit channel was told
  on.policyKeeper.onChanged(() => void sweeping.now());
  const rounds = [
    sweeping,
    // Redis may be emptied without a reconnect
    startRounds("ledger", timing.sweepMs, () => checkLedger(ledger, store, log, 200), log),
    startRounds("resend", timing.stableGapMs, () => resendOwn(contextNow()), log),
    startRounds(
      "late-effects",
      timing.stableGapMs,
      () => lookForLateEffects(contextNow(), tellOf),
      log,
    ),
  ];
  for (const round of rounds) opened(round);
  startDigests(on);
}

/** Digests, drift of pinned VMs, unrequested changes. Redis lets one process at a time; each ID is posted once. */
function startDigests(on: Services): void {
  const { redis, key, log, config, inventory, opened, announce } = on;
  const { timing } = config.policy;
  const now = Date.now;
  const requests = requestsForDigest(on.store, redis, key, requestable(commands));
  const digests = createDigests({ ...on, requests, now });
  const alarms = createAlarms({ config, announce });
  const stopping = new AbortController();
  const postDue = createPostDue({
    ...on,
    digests,
    alarm: (channelId, id, message) =>
      alarms.tell(id, message, placesOf(config.policy, channelId)[0] ?? ""),
    now,
    leaseMs: leaseInCalls * timing.httpTimeoutMs,
  });
  const shared = { redis, key, log, inventory, alarms, follow: on.subscriptions.follow, now };
  const drift = () =>
    monitorDrift({
      ...shared,
      appraiser: on.appraiser,
      pins: config.policy.attestation.pins,
      records: digests.drift,
      everyMs: timing.driftWatchMs,
      signal: stopping.signal,
    });
  const statuses = () =>
    monitorStatuses({
      ...shared,
      requests,
      records: digests.statuses,
      everyMs: timing.inventoryRefreshMs,
    });
  // More often than the interval, so that a dead process's turn is soon retaken
  for (const round of [
    startRounds("digests", Math.min(dueEveryMs, timing.sweepMs), postDue, log),
    startRounds("drift-watch", timing.driftWatchMs / 4, drift, log),
    startRounds("status-watch", timing.inventoryRefreshMs / 2, statuses, log),
  ])
    opened(round);
  // Last, so that it is closed first: a long round must not delay the stop
  opened({ close: async () => stopping.abort() });
}
