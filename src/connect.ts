import { setTimeout as sleep } from "node:timers/promises";
import { commands } from "./commands/index.ts";
import type { Compute } from "./compute/compute.ts";
import { createCompute } from "./compute/create-compute.ts";
import { signOfService } from "./compute/errors.ts";
import type { Config } from "./config.ts";
import { UserError } from "./errors.ts";
import { createInventory } from "./inventory/create-inventory.ts";
import type { Inventory } from "./inventory/inventory.ts";
import { createSnapshots, type Snapshots } from "./inventory/snapshots.ts";
import { createQueues, type Queues } from "./jobs/queues.ts";
import type { Log } from "./log.ts";
import { sentence } from "./messages/message.ts";
import { md, name } from "./messages/text.ts";
import {
  checkRedis,
  connectRedis,
  createKeys,
  type Keys,
  type RedisCheck,
  type RedisClient,
} from "./redis.ts";
import { afterwards } from "./requests/afterwards.ts";
import { createStore, type Store } from "./requests/store.ts";
import { createRollStore, type RollStore } from "./rolls/store.ts";
import { createAddendum } from "./requests/addendum.ts";
import { patienceFor } from "./outages/outage.ts";
import { createWatch, type Watch } from "./outages/watch.ts";
import { startAnnouncer } from "./slack/announce.ts";
import { type Delivery, startDelivery } from "./slack/deliver.ts";
import { type BotIdentity, readIdentity } from "./slack/identity.ts";
import { createPace, type PaceLimits } from "./slack/pace.ts";
import { createPeople, type People } from "./slack/people.ts";
import { sendPicture } from "./slack/picture.ts";
import { createPoster } from "./slack/post.ts";
import { isChange, type Talk } from "./slack/talk.ts";
import { startRollDelivery } from "./slack/roll-delivery.ts";
import { createWeb, signOfSlack, type Web } from "./slack/web.ts";
import { createTelemetry, type Telemetry } from "./telemetry.ts";

/** What every role needs: the connections, and what is kept and said through them. */
export interface Connected {
  config: Config;
  log: Log;
  key: Keys;
  telemetry: Telemetry;
  redis: RedisClient;
  redisCheck: RedisCheck;
  store: Store;
  rolls: RollStore;
  web: Web;
  identity: BotIdentity;
  people: People;
  compute: Compute;
  inventory: Inventory;
  snapshots: Snapshots;
  queues: Queues;
  delivery: Delivery;
  tell: Talk["tell"];
  announce: ReturnType<typeof startAnnouncer>["announce"];
  watch: Watch;
  at(point: string, what: string): Promise<void>;
  /** What is opened first is closed last. */
  opened<T>(thing: T, stop: (thing: T) => Promise<unknown>): T;
}

export async function connect(
  config: Config,
  log: Log,
  options: Pick<Connected, "at" | "opened"> & {
    namespace?: string | undefined;
    slackPace?: PaceLimits | undefined;
  },
): Promise<Connected> {
  const { policy } = config;
  const { timing } = policy;
  const { opened, at } = options;
  const key = createKeys(options.namespace);
  const telemetry = createTelemetry();
  const redis = opened(await connectRedis(config.redisUrl, "commands", log), (it) => it.quit());
  const redisCheck = await checkRedis(redis, { allowVolatile: config.allowVolatileRedis });
  if (redisCheck.kind === "volatile" && !redisCheck.allowed) {
    throw new UserError(redisCheck.sentence);
  }
  const watch = createWatch(
    patienceFor(timing.outageMs),
    async ({ userId, teamId }) => (await people.person(userId, teamId)).name,
  );
  const web = createWeb({
    token: config.slack.botToken,
    apiUrl: config.slack.apiUrl,
    log,
    onCall: (method, outcome, ms) => {
      telemetry.slackCalls.inc({ method, outcome });
      telemetry.slackSeconds.observe({ method }, ms / 1000);
      watch.saw("slack", signOfSlack(method, outcome));
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
      onCall: ({ endpoint, kind, reason, durationMs }) => {
        telemetry.computeCalls.inc({ endpoint, outcome: kind ?? "ok" });
        telemetry.computeSeconds.observe({ endpoint }, durationMs / 1000);
        watch.saw("service", signOfService(endpoint, kind, reason));
      },
    }),
    (it) => it.close(),
  );
  const inventory = opened(
    createInventory({
      redis,
      key,
      compute,
      log,
      refreshMs: timing.inventoryRefreshMs,
      concurrency: 32,
    }),
    (it) => it.close(),
  );
  inventory.start();
  const snapshots = createSnapshots(redis, key);
  const queues = opened(createQueues(redis, key.prefix), (it) => it.close());
  await queues.ready();

  const everyMs = Math.min(500, timing.pollFirstMs);
  const pace = createPace(redis, key, options.slackPace);
  const { apiUrl } = config.slack;
  const announcer = opened(
    startAnnouncer({
      redis,
      key,
      web,
      pace,
      log,
      everyMs,
      sendPicture: (picture) => sendPicture(picture, { web, apiUrl, log }),
    }),
    (it) => it.close(),
  );
  const tell: Talk["tell"] = async (where, id, message) => {
    const channelId = policy[where]?.channel;
    if (channelId) await announcer.announce({ id, channelId, message });
  };
  const store = tellingOfFreezes(createStore(redis, key), tell);
  const poster = createPoster({
    web,
    store,
    pace,
    botToken: config.slack.botToken,
    apiUrl: config.slack.apiUrl,
    log,
    at,
  });
  const delivery = opened(
    startDelivery({
      store,
      poster,
      commands: commands.filter(isChange),
      approvers: policy.access.approve,
      addendum: createAddendum({ compute, policy, now: Date.now, log }),
      afterwards: (request) => afterwards(request, { snapshots, inventory }),
      everyMs,
      hiddenMs: 10 * timing.heartbeatMs,
      log,
      at,
    }),
    (it) => it.close(3000),
  );
  const rolls = createRollStore(redis, key);
  const changes = commands.filter(isChange);
  opened(startRollDelivery({ rolls, commands: changes, web, apiUrl, pace, log, everyMs }), (it) =>
    it.close(),
  );
  return {
    config,
    log,
    key,
    telemetry,
    redis,
    redisCheck,
    store,
    rolls,
    web,
    identity,
    people,
    compute,
    inventory,
    snapshots,
    queues,
    delivery,
    tell,
    announce: announcer.announce,
    watch,
    at,
    opened,
  };
}

/** A freeze is never silent, whoever pulls it. */
function tellingOfFreezes(store: Store, tell: Talk["tell"]): Store {
  return {
    ...store,
    async freeze(freeze) {
      const isNew = await store.freeze(freeze);
      if (isNew) {
        const text = md`🧊 ${freeze.by} froze all changes${freeze.reason ? md`: ${freeze.reason}` : ""}. ${name("/gatehouse thaw")} ends it.`;
        await tell("audit", `freeze-${await store.now()}`, sentence(text));
      }
      return isNew;
    },
  };
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
    if (!answer.retry || tries >= 20) {
      throw new UserError(answer.problem, "Look at SLACK_BOT_TOKEN and SLACK_API_URL");
    }
    await sleep(Math.min(5000, 250 * 2 ** tries));
  }
}
