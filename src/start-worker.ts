import { randomBytes } from "node:crypto";
import path from "node:path";
import { commands } from "./commands/index.ts";
import type { Connected } from "./connect.ts";
import { startCanary } from "./jobs/canary.ts";
import { startHeart } from "./jobs/heart.ts";
import { createRescue } from "./jobs/rescue.ts";
import { startRounds } from "./rounds.ts";
import { startWorkers } from "./jobs/worker.ts";
import type { Message } from "./messages/message.ts";
import { connectRedis } from "./redis.ts";
import { checkLedger } from "./requests/check-ledger.ts";
import { lookForLateEffects } from "./requests/late-effects.ts";
import { openLedger } from "./requests/ledger.ts";
import { advance } from "./requests/perform.ts";
import type { Performing } from "./requests/performing.ts";
import type { StoredRequest } from "./requests/record.ts";
import { resendOwn } from "./requests/resend.ts";
import { sweep } from "./requests/sweep.ts";
import { watch } from "./requests/watch.ts";
import { advanceRolls } from "./rolls/advance-roll.ts";
import type { RollingWork } from "./rolls/rolling-work.ts";
import { isChange } from "./slack/talk.ts";
import { startDigests } from "./start-digests.ts";

const drainMs = 6000;
const concurrency = 20;

/** The part of a process that performs requests. `onDead` is told when the queue stands still. */
export async function startWorker(on: Connected, onDead: (why: string) => void): Promise<void> {
  const { config, log, key, redis, store, queues, delivery, opened } = on;
  const { policy, policyVersion } = config;
  const { timing } = policy;
  const workerId = `w-${randomBytes(6).toString("hex")}`;
  const ledger = opened(await openLedger(path.join(config.dataDir, "ledger"), workerId), (it) =>
    it.close(),
  );
  for (const line of ledger.torn) {
    log.warn("ledger.torn-line", { ...line });
    await store.note({ what: "ledger-torn", ...line });
  }
  const check = () => checkLedger(ledger, store, log);
  await check();
  // Redis may come back older than it was: what we sent is compared again
  redis.on("ready", () => {
    check().catch((error: unknown) => log.warn("ledger.unchecked", { error }));
  });
  const heart = opened(
    await startHeart({ redis, key, workerId, beatMs: timing.heartbeatMs, log }),
    (it) => it.close(),
  );
  const performing: Performing = {
    store,
    ledger,
    compute: on.compute,
    commands: commands.filter(isChange),
    policy,
    policyVersion,
    ourTeamId: on.identity.teamId,
    person: (id, teamId) => on.people.person(id, teamId),
    workerId,
    isAlive: heart.isAlive,
    wake: queues.wake,
    watch: queues.watch,
    mine: new Set(),
    calling: new Set(),
    log,
    at: on.at,
  };
  const canary = opened(
    startCanary({ workerId, everyMs: timing.canaryMs, send: queues.canary, onDead }),
    (it) => it.close(),
  );
  const connection = opened(await connectRedis(config.redisUrl, "worker", log), (it) => it.quit());
  const jobs = opened(
    startWorkers({
      connection,
      prefix: key.prefix,
      concurrency,
      lockMs: Math.max(5000, 2 * timing.httpTimeoutMs),
      async advance(id) {
        const next = await advance(id, performing);
        delivery.nudge();
        return next;
      },
      async watch(watchKey, polls) {
        const next = await watch(watchKey, polls, performing);
        delivery.nudge();
        return next;
      },
      canary: canary.sings,
      log,
    }),
    (it) => it.close(drainMs),
  );
  await heart.beatFor(jobs.ids);
  jobs.begin();
  const rescue = createRescue(redis, heart.isAlive);
  const rescueAll = async () => {
    const rescued = await queues.forEach(rescue);
    if (rescued > 0) log.warn("queue.rescued", { rescued });
  };
  const tellOf = async ({ record, delivered }: StoredRequest, message: Message) => {
    const { channelId, ts } = delivered.card ?? {};
    const place = channelId && ts ? { channelId, threadTs: ts } : { channelId: record.channelId };
    await on.announce({ id: `late-effect:${record.id}`, ...place, message });
  };
  const rolling: RollingWork = { rolls: on.rolls, performing, known: new Map(), at: on.at };
  const rounds = [
    startRounds("rescue", timing.heartbeatMs, rescueAll, log),
    startRounds("sweep", timing.sweepMs, () => sweep(performing), log),
    // Redis may be emptied without a reconnect
    startRounds("ledger", timing.sweepMs, () => checkLedger(ledger, store, log, 200), log),
    startRounds("rolls", timing.pollFirstMs, () => advanceRolls(rolling), log),
    startRounds("resend", timing.stableGapMs, () => resendOwn(performing), log),
    startRounds(
      "late-effects",
      timing.stableGapMs,
      () => lookForLateEffects(performing, tellOf),
      log,
    ),
  ];
  for (const round of rounds) opened(round, (it) => it.close());
  startDigests(on);
}
