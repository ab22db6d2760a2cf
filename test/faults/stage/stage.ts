import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { Redis } from "ioredis";
import { variablesFor } from "../../../demo/world.ts";
import { type RedisServer, startRedis } from "../../../sandbox/ensure-redis.ts";
import { silentLog } from "../../../src/log/log.ts";
import { connectRedis, createKeys } from "../../../src/redis/redis.ts";
import type { RedisNodes } from "../../support/redis-nodes.ts";
import { type RemoteSlack, remoteSlack } from "../../support/remote-slack.ts";
import type { BotOptions } from "./bot.ts";
import { type Asked, check, readJournal, type Verdict } from "../check/checker.ts";
import type { Journalled } from "../check/count-effects.ts";
import { startChild } from "./child.ts";
import { looking } from "./looking.ts";
import { type Proxy, startProxy } from "./proxy.ts";
import { type Service, service } from "./service.ts";
import { type Bot, startBot } from "./start-bot.ts";
import { fastSlack, paceOf, type Timing, faultPolicy, rowTiming } from "./timing.ts";
import { pendingOf } from "../../support/pending.ts";
import { countPendingDeliveries } from "../../support/pending-deliveries.ts";
import { steppedClock } from "./step-clock.ts";

export interface StageOptions {
  seed?: number;
  vms?: number;
  timing?: Partial<Timing>;
  policy?: string;
  /** Further variables of each process. */
  env?: Readonly<Record<string, string>>;
  workers?: number;
  gateways?: number;
  receive?: "socket" | "http";
  /** How long operations take at the service (ms). */
  transitionMs?: readonly [number, number];
  /** Slack's real limits, on both sides. */
  realSlackPace?: boolean;
  /** How long an address of a console is good for (ms). */
  consoleMs?: number;
  /** `program`: instead of the one that is found. */
  redis?: { args?: readonly string[]; env?: Record<string, string>; program?: string };
  /** The clocks of Redis and Slack go with that of whichever process is set: the whole world is at another time. */
  oneClock?: boolean;
  /** Take the place of the single Redis, without a line in front; whoever started them ends them. */
  nodes?: RedisNodes;
  /** One of its own by default. */
  namespace?: string;
  ackTimeoutMs?: number;
  /** The service fills this folder beside gatehouse.yml with what vouches for its VMs' evidence. */
  endorsements?: string;
  /** Straight lines instead of proxies. */
  direct?: boolean;
  /** Leaves the folder with the logs where it is. */
  keep?: boolean | undefined;
}

/** A row that needs what this machine doesn't have. The message says what. */
export class CannotBeDone extends Error {}

/** Everything in processes of its own: Redis, the service, Slack, gateways and workers, and the lines between them. */
export interface Stage extends AsyncDisposable {
  readonly seed: number;
  readonly folder: string;
  readonly namespace: string;
  readonly redis: Redis;
  redisServer: RedisServer;
  readonly service: Service;
  readonly slack: RemoteSlack;
  readonly lines: { redis: Proxy; compute: Proxy; slack: Proxy };
  readonly bots: Bot[];
  readonly asked: Asked[];
  /** Tokens and keys that the processes were given. */
  readonly secrets: readonly string[];
  /** Faults done so far; rows count their own with `stage.faults++`. */
  faults: number;
  workers(): Bot[];
  gateways(): Bot[];
  /** Starts one more, in the place of a volume (`slot`) of its own; `begin: false` only loads it. */
  addBot(
    role: "worker" | "gateway",
    how?: Partial<BotOptions> & { slot?: string; begin?: boolean },
  ): Promise<Bot>;
  /** Resolves when so many gateways are connected to Slack (Socket Mode). */
  connected(gateways: number): Promise<unknown>;
  /** Types a command about a VM and remembers it for the checker. */
  request(
    command: string,
    vm: string,
    how?: { who?: string; channel?: string; flags?: string },
  ): Promise<Asked>;
  journal(): Promise<Journalled[]>;
  /** Resolves with the first request that fits. */
  until(fits: (request: Journalled) => boolean, timeoutMs?: number): Promise<Journalled>;
  /** Resolves when nothing is open but what waits for a person, and Slack was told everything. */
  quiet(timeoutMs?: number): Promise<Journalled[]>;
  check(): Promise<Verdict>;
  close(): Promise<void>;
}

export async function startStage(options: StageOptions = {}): Promise<Stage> {
  const seed = options.seed ?? 1;
  const namespace = options.namespace ?? `faults-${process.pid}-${Math.floor(performance.now())}`;
  const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-faults-"));
  const closers: (() => Promise<unknown>)[] = options.keep
    ? []
    : [() => rm(folder, { recursive: true, force: true })];
  const close = async () => {
    for (const stop of closers.splice(0).toReversed()) await stop().catch(() => undefined);
  };
  try {
    const sandbox = {
      seed,
      transitionMs: options.transitionMs ?? [80, 160],
      ...(options.consoleMs === undefined ? {} : { consoleMs: options.consoleMs }),
      ...(options.endorsements === undefined
        ? {}
        : { endorsements: path.join(folder, options.endorsements) }),
      world: { projects: Math.ceil((options.vms ?? 20) / 20), vmsPerProject: 20 },
    };
    const clock = options.oneClock ? await steppedClock(folder) : undefined;
    if (typeof clock === "string") throw new CannotBeDone(clock);
    const [redisServer, computeChild, slackChild] = await Promise.all([
      startRedis({
        dir: path.join(folder, "."),
        ...options.redis,
        ...(clock && { env: clock.env, args: clock.args }),
      }),
      startChild("sandbox/compute/main.ts", [JSON.stringify(sandbox)]),
      startChild(
        "sandbox/slack/main.ts",
        [
          "--manifest",
          "manifest.yml",
          "--seed",
          String(seed),
          "--rate-limits",
          options.realSlackPace ? "slack" : "off",
          "--ack-timeout-ms",
          String(options.ackTimeoutMs ?? 3000),
        ],
        undefined,
        clock?.env,
      ),
    ]);
    closers.push(
      () => stage.redisServer.kill(),
      () => computeChild.stop(),
      () => slackChild.stop(),
    );
    const { url, apiKey, controlUrl } = computeChild.ready as Record<string, string>;
    const slackIs = slackChild.ready as Record<string, string>;
    const portOf = (address: string) => Number(new URL(address).port);
    const lines = {
      redis: await startProxy(redisServer.port),
      compute: await startProxy(portOf(url ?? "")),
      slack: await startProxy(portOf(slackIs["url"] ?? "")),
    };
    closers.push(
      () => lines.redis.close(),
      () => lines.compute.close(),
      () => lines.slack.close(),
    );
    const { nodes } = options;
    const redis = nodes
      ? await connectRedis(nodes.url, "worker", silentLog(), { namespace })
      : new Redis(redisServer.url, { maxRetriesPerRequest: null });
    redis.on("error", () => undefined); // it is killed on purpose
    closers.push(async () => redis.disconnect());
    const slack = remoteSlack(slackIs["controlUrl"] ?? "");
    const policyPath = path.join(folder, "gatehouse.yml");
    const timing = { ...rowTiming, ...options.timing };
    await writeFile(policyPath, faultPolicy(timing, options.policy));
    const through = (proxy: Proxy, real: string) =>
      options.direct ? real : real.replace(/:\d+/, `:${proxy.port}`);
    const { botToken = "", appToken = "", signingSecret = "", apiUrl = "" } = slackIs;
    const env: Record<string, string> = {
      ...variablesFor({
        slack: { botToken, appToken, signingSecret, apiUrl: through(lines.slack, apiUrl) },
        compute: { url: through(lines.compute, url ?? ""), apiKey: apiKey ?? "" },
        redisUrl: nodes?.url ?? through(lines.redis, redisServer.url),
        policyPath,
        receive: options.receive,
      }),
      REDIS_NAMESPACE: namespace,
      ...options.env,
    };
    const bots: Bot[] = [];
    let added = 0;
    const pendingDeliveries = countPendingDeliveries(redis, createKeys(namespace));
    const stage: Stage = {
      seed,
      folder,
      namespace,
      redis,
      redisServer,
      service: service(controlUrl ?? ""),
      slack,
      lines,
      bots,
      asked: [],
      secrets: Object.entries(env).flatMap(([name, value]) =>
        /TOKEN|SECRET|KEY/.test(name) && value !== "" ? [value] : [],
      ),
      faults: 0,
      workers: () => bots.filter((bot) => bot.role === "worker" && !bot.isGone()),
      gateways: () => bots.filter((bot) => bot.role === "gateway" && !bot.isGone()),
      async addBot(role, how = {}) {
        // A data directory is one process's: two that start at once get one each
        const { slot = `${role}-more-${(added += 1)}`, begin = true, env: more, ...rest } = how;
        const bot = await startBot({
          role,
          env: { ...env, DATA_DIR: path.join(folder, slot), ...more },
          pace: paceOf(timing),
          log: path.join(folder, `${slot}.log`),
          ...(options.realSlackPace ? {} : { slackLimits: fastSlack }),
          ...rest,
        });
        if (clock) {
          const { setClock } = bot;
          bot.setClock = async (offMs) => {
            await clock.set(offMs);
            await setClock(offMs);
          };
        }
        bots.push(bot);
        if (begin) await bot.begin();
        if (begin && role === "gateway" && options.receive === "http")
          await slack.question("settings", {
            requestUrl: `http://127.0.0.1:${bot.port}/slack/events`,
          });
        return bot;
      },
      async request(command, vm, how = {}) {
        const { who = "olivia", channel = "ops", flags = "" } = how;
        const outcome = await slack.act(who, "types", channel, `/${command} ${vm} ${flags}`.trim());
        const asked: Asked = {
          who,
          command,
          target: vm,
          acked: outcome.acked,
          deliveryId: outcome.deliveryId,
        };
        stage.asked.push(asked);
        return asked;
      },
      connected: (gateways) =>
        looking(
          async () =>
            (await slack.question<number>("connections")) >= gateways ? true : undefined,
          15_000,
          async () => `not ${gateways} gateways connect`,
        ),
      journal: () => readJournal(redis, namespace),
      until: (fits, timeoutMs = 15_000) =>
        looking(
          async () => (await stage.journal()).find(fits),
          timeoutMs,
          () => describe(stage),
        ),
      quiet: (timeoutMs = 30_000) =>
        looking(
          async () => {
            if ((await owed(redis, namespace)) > 0) return undefined;
            // What was acknowledged becomes a request only afterwards: once none is left, the journal has them all
            if ((await pendingDeliveries()) > 0) return undefined;
            const journal = await stage.journal();
            const isSettled = journal.every(
              ({ isFinal, state }) => isFinal || state === "unknown" || state === "draft",
            );
            return isSettled && (await owed(redis, namespace)) === 0 ? journal : undefined;
          },
          timeoutMs,
          () => describe(stage),
        ),
      check: async () =>
        check({
          redisUrl: nodes ? (await nodes.primary()).url : stage.redisServer.url,
          namespace,
          computeControl: controlUrl ?? "",
          slackControl: slackIs["controlUrl"] ?? "",
          asked: stage.asked,
          faults: stage.faults,
        }),
      close,
      [Symbol.asyncDispose]: close,
    };
    closers.push(() => Promise.all(bots.map((bot) => bot.kill())));
    const starting = [
      ...Array.from({ length: options.gateways ?? 1 }, () => "gateway" as const),
      ...Array.from({ length: options.workers ?? 1 }, () => "worker" as const),
    ].map(async (role, n) => stage.addBot(role, { slot: `${role}-${n}` }));
    await Promise.all(starting);
    const broken = bots.find((bot) => bot.isGone() && bot.refused === undefined);
    if (broken) throw new Error(`a ${broken.role} ended at once: ${broken.lastWords()}`);
    await stage.connected(options.receive === "http" ? 0 : stage.gateways().length);
    return stage;
  } catch (error) {
    await close();
    throw error;
  }
}

/** How many requests, and cards that several share, may still have to be said. */
async function owed(redis: Stage["redis"], namespace: string): Promise<number> {
  return pendingOf(redis, createKeys(namespace), "request", "shared-card", "alert");
}

async function describe(stage: Stage): Promise<string> {
  const journal = await stage.journal();
  const named = (fits: (one: Journalled) => boolean) =>
    journal
      .filter(fits)
      .map(
        ({ id, command, target, state, history, stage: facts }) =>
          `${id} ${command} ${target} ${state} [${history.join(" ")}] ${facts.why ?? ""}`,
      );
  const open = named(({ isFinal }) => !isFinal);
  const unsent = named(({ isFinal, attempt }) => isFinal && attempt === 0).slice(-3);
  const due = await owed(stage.redis, stage.namespace);
  return `Open: ${open.join("; ") || "none"}. Never sent: ${unsent.join("; ") || "none"}. ${due} wait to be said.`;
}
