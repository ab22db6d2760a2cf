import { randomBytes } from "node:crypto";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { commands } from "./commands/index.ts";
import { createCompute } from "./compute/create-compute.ts";
import type { Config } from "./config.ts";
import { UserError } from "./errors.ts";
import { startHealth } from "./health.ts";
import { createInventory } from "./inventory/create-inventory.ts";
import { createSnapshots } from "./inventory/snapshots.ts";
import { startCanary } from "./jobs/canary.ts";
import { startHeart } from "./jobs/heart.ts";
import { createQueues } from "./jobs/queues.ts";
import { startRounds } from "./jobs/rounds.ts";
import { startWorkers } from "./jobs/worker.ts";
import type { Log } from "./log.ts";
import { checkRedis, connectRedis, createKeys } from "./redis.ts";
import { checkLedger } from "./requests/check-ledger.ts";
import { openLedger } from "./requests/ledger.ts";
import { advance } from "./requests/perform.ts";
import type { Performing } from "./requests/performing.ts";
import { resendOwn } from "./requests/resend.ts";
import { createStore } from "./requests/store.ts";
import { sweep } from "./requests/sweep.ts";
import { watch } from "./requests/watch.ts";
import { startDelivery } from "./slack/deliver.ts";
import { type Gateway, startGateway } from "./slack/gateway.ts";
import { type BotIdentity, readIdentity } from "./slack/identity.ts";
import { createPace } from "./slack/pace.ts";
import { createPeople } from "./slack/people.ts";
import { createPoster } from "./slack/post.ts";
import { isChange } from "./slack/talk.ts";
import { createWeb, type Web } from "./slack/web.ts";
import { createStatus } from "./status.ts";
import { createTelemetry } from "./telemetry.ts";

/** A started process. Closing it takes no new work, ends or hands back what runs, and releases everything. */
export interface Running {
  readonly port: number;
  close(): Promise<void>;
}

export interface StartOptions {
  /** The process can't go on and should be started anew. */
  onWedged?: (why: string) => void;
  /** Reached at named points of the protocol; tests of crashes end the process there. */
  at?: (point: string, what: string) => Promise<void>;
  /** Keeps several worlds apart on one Redis. */
  namespace?: string;
  /** Interface of the process's own web server; all by default. */
  host?: string;
}

const drainMs = 6000;

/** Connects everything to the left with everything to the right, for one role, and stops it in reverse. */
export async function start(
  config: Config,
  log: Log,
  options: StartOptions = {},
): Promise<Running> {
  const { policy, policyVersion } = config;
  const { timing } = policy;
  const at = options.at ?? (async () => undefined);
  const key = createKeys(options.namespace);
  const changes = commands.filter(isChange);
  const closers: (() => Promise<unknown>)[] = [];
  const close = async () => {
    for (const stop of closers.toReversed()) {
      await stop().catch((error: unknown) => log.warn("stop.failed", { error }));
    }
  };
  /** What is opened first is closed last. */
  const opened = <T>(thing: T, stop: (thing: T) => Promise<unknown>): T => {
    closers.push(() => stop(thing));
    return thing;
  };
  try {
    const telemetry = createTelemetry();
    const redis = opened(await connectRedis(config.redisUrl, "commands", log), (it) => it.quit());
    const redisCheck = await checkRedis(redis, { allowVolatile: config.allowVolatileRedis });
    if (redisCheck.kind === "volatile" && !redisCheck.allowed)
      throw new UserError(redisCheck.sentence);
    const store = createStore(redis, key);
    const web = createWeb({
      token: config.slack.botToken,
      apiUrl: config.slack.apiUrl,
      log,
      onCall: (method, outcome, ms) => {
        telemetry.slackCalls.inc({ method, outcome });
        telemetry.slackSeconds.observe({ method }, ms / 1000);
      },
    });
    const identity = await identify(web, config);
    const people = createPeople({
      web,
      ourTeamId: identity.teamId,
      ourEnterpriseId: identity.enterpriseId,
      groupIds: groupsOf(config),
      cacheMs: timing.peopleCacheMs,
    });
    const compute = opened(
      createCompute({
        baseUrl: config.compute.url,
        apiKey: config.compute.apiKey,
        timeoutMs: timing.httpTimeoutMs,
        onCall: ({ endpoint, kind, durationMs }) => {
          telemetry.computeCalls.inc({ endpoint, outcome: kind ?? "ok" });
          telemetry.computeSeconds.observe({ endpoint }, durationMs / 1000);
        },
      }),
      (it) => it.close(),
    );
    const inventory = opened(
      createInventory({ redis, key, compute, log, refreshMs: timing.inventoryRefreshMs }),
      (it) => it.close(),
    );
    inventory.start();
    const snapshots = createSnapshots(redis, key);
    const queues = opened(createQueues(redis, key.prefix), (it) => it.close());
    await queues.ready();

    const poster = createPoster({
      web,
      store,
      pace: createPace(redis, key),
      botToken: config.slack.botToken,
      apiUrl: config.slack.apiUrl,
      log,
    });
    const delivery = opened(
      startDelivery({
        store,
        poster,
        commands: changes,
        approvers: policy.access.approve,
        everyMs: Math.min(500, timing.pollFirstMs),
        log,
        at,
      }),
      (it) => it.close(3000),
    );

    const status = createStatus({ redis, redisCheck, web, inventory, store, queues });
    let wedged: string | undefined;
    let socketProblem: () => string | undefined = () => undefined;

    if (config.role !== "gateway") {
      const workerId = `w-${randomBytes(6).toString("hex")}`;
      const ledger = opened(await openLedger(path.join(config.dataDir, "ledger"), workerId), (it) =>
        it.close(),
      );
      const checked = () => checkLedger(ledger, store, log);
      await checked();
      // Redis may come back older than it was: what we sent is compared again
      redis.on(
        "ready",
        () => void checked().catch((error: unknown) => log.warn("ledger.unchecked", { error })),
      );
      const heart = opened(
        await startHeart({ redis, key, workerId, beatMs: timing.heartbeatMs, log }),
        (it) => it.close(),
      );
      const performing: Performing = {
        store,
        ledger,
        compute,
        commands: changes,
        policy,
        policyVersion,
        ourTeamId: identity.teamId,
        person: (id, teamId) => people.person(id, teamId),
        workerId,
        isAlive: heart.isAlive,
        wake: queues.wake,
        watch: queues.watch,
        mine: new Set(),
        log,
        at,
      };
      const connection = opened(await connectRedis(config.redisUrl, "worker", log), (it) =>
        it.quit(),
      );
      const canary = startCanary({
        workerId,
        everyMs: timing.canaryMs,
        send: queues.canary,
        onDead: (why) => {
          wedged = why;
          options.onWedged?.(why);
        },
      });
      opened(canary, (it) => it.close());
      opened(
        startWorkers({
          connection,
          prefix: key.prefix,
          concurrency: 20,
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
      opened(
        startRounds("sweep", timing.sweepMs, () => sweep(performing), log),
        (it) => it.close(),
      );
      opened(
        startRounds("resend", timing.stableGapMs, () => resendOwn(performing), log),
        (it) => it.close(),
      );
    }

    let route: Gateway["route"] | undefined;
    if (config.role !== "worker" && config.slack.receive) {
      const gateway = await startGateway({
        botToken: config.slack.botToken,
        apiUrl: config.slack.apiUrl,
        receive: config.slack.receive,
        identity,
        redis,
        key,
        web,
        people,
        store,
        inventory,
        snapshots,
        compute,
        commands,
        policy,
        policyVersion,
        wake: queues.wake,
        nudge: delivery.nudge,
        status: status.lines,
        telemetry,
        log,
      });
      opened(gateway, (it) => it.close());
      route = gateway.route;
      socketProblem = gateway.problem;
    }

    const health = opened(
      await startHealth({
        port: config.port,
        ...(options.host ? { host: options.host } : {}),
        log,
        telemetry: {
          ...telemetry,
          async render() {
            await status.measure(telemetry);
            return telemetry.render();
          },
        },
        alive: () => wedged,
        ready: async () => socketProblem() ?? (await status.problem()),
        ...(route ? { routes: route } : {}),
      }),
      (it) => it.close(),
    );
    log.info("process.started", { port: health.port, policyVersion, redis: redisCheck.kind });
    return { port: health.port, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Every user group that the policy names. */
function groupsOf({ policy }: Config): string[] {
  const named = Object.values(policy.access).flat();
  return [...new Set(named.filter((id) => id.startsWith("S")))];
}

/** Who we are in Slack. Slack may be away for a moment when we start; a refused token is for a person to mend. */
async function identify(web: Web, config: Config): Promise<BotIdentity> {
  const { receive } = config.slack;
  const appToken = receive?.mode === "socket" ? receive.appToken : undefined;
  for (let tries = 0; ; tries++) {
    const answer = await readIdentity(web, { appToken });
    if (!("problem" in answer)) return answer;
    if (!answer.retry || tries >= 20)
      throw new UserError(answer.problem, "Look at SLACK_BOT_TOKEN and SLACK_API_URL");
    await sleep(Math.min(5000, 250 * 2 ** tries));
  }
}
