import { EnvHttpProxyAgent, setGlobalDispatcher } from "undici";
import { alertSource, heldAlerts } from "../alerts/alert-source.ts";
import { createAlerts } from "../alerts/alerts.ts";
import {
  attestationInWords,
  createAppraiser,
  createEvidenceRegister,
} from "../attestation/appraiser.ts";
import { type PinTrail, createAcceptedPins } from "../attestation/pins.ts";
import { createRefresher } from "../attestation/refresher.ts";
import { groupChangesKey } from "../audit/stored-policy.ts";
import { createTrail } from "../audit/trail.ts";
import { commands } from "../commands/index.ts";
import { type Compute, signOfService } from "../compute/compute.ts";
import { type ComputeOptions, createCompute } from "../compute/create-compute.ts";
import type { CallReport } from "../compute/http.ts";
import { type Config, ConfigError } from "../config/config.ts";
import { type Proxies, proxyFor, proxyOptions } from "../config/proxy.ts";
import { createAlarms } from "../digests/alarms.ts";
import { createDriftRecords } from "../digests/drift-facts.ts";
import { renderFeed } from "../digests/render-feed.ts";
import { createSubscriptions } from "../digests/subscriptions.ts";
import { tellElsewhere } from "../digests/tell-elsewhere.ts";
import { UserError } from "../errors.ts";
import { createInventory } from "../inventory/create-inventory.ts";
import { createSnapshots } from "../inventory/snapshots.ts";
import type { Log } from "../log/log.ts";
import type { LimitName, Telemetry } from "../log/telemetry.ts";
import { recordSpan } from "../log/traces.ts";
import { counted } from "../messages/message.ts";
import { type DependencyProbe, createDependencyProbe } from "../monitor/dependency-probe.ts";
import { rememberVerdicts } from "../monitor/drift-probe.ts";
import { createOutageStore } from "../outages/outages.ts";
import { recapWork, reportEveryMs } from "../outages/post-recaps.ts";
import { proposalSource } from "../proposals/proposal-source.ts";
import { createProposals } from "../proposals/proposals.ts";
import { countWorkers } from "../queue/heartbeat.ts";
import { createQueues } from "../queue/queues.ts";
import { checkRedis, storageOf, storageProblems } from "../redis/check.ts";
import type { PendingKind } from "../redis/pending.ts";
import { type Keys, type RedisClient, connectRedis, createKeys } from "../redis/redis.ts";
import { repeatHere } from "../redis/repeat.ts";
import { requestable } from "../registry/define.ts";
import {
  busyChannels,
  createAttestationNote,
  freezeNews,
  recordResults,
} from "../requests/after-result.ts";
import { createJournal } from "../requests/journal/journal.ts";
import { observeTold, observed } from "../requests/journal/observe-journal.ts";
import { createPolls } from "../requests/journal/polls.ts";
import {
  askingAbout as askingAboutTarget,
  changesSince,
} from "../requests/render/since-request.ts";
import { createRollouts } from "../rollouts/rollouts.ts";
import type { GatewayContext } from "../slack/conversation/gateway-context.ts";
import { createNotices, deliveryWork } from "../slack/deliver/deliver.ts";
import { createFeeds } from "../slack/deliver/feeds.ts";
import { linkTo } from "../slack/deliver/permalink.ts";
import { type SlackLimits, createRateLimiter } from "../slack/deliver/rate-limiter.ts";
import { requestSource } from "../slack/deliver/requests.ts";
import { rolloutSource } from "../slack/deliver/rollouts.ts";
import { sharedCardSource } from "../slack/deliver/shared-cards.ts";
import { learnIdentity } from "../slack/people/identity.ts";
import { createPeople } from "../slack/people/people.ts";
import { createSharedAnswer } from "../slack/people/shared-answer.ts";
import { groupsNamedIn } from "../slack/people/user-groups.ts";
import { createSharedChannels } from "../slack/shared-channels.ts";
import { createWeb, signOfSlack } from "../slack/web.ts";
import { type TrustedRoots, vendorRoots } from "../verifier/roots.ts";
import { startPendingWork } from "../queue/pending-work.ts";
import { startRelay } from "../queue/relay.ts";
import { createClock, createTaking } from "./clock.ts";
import { judgeFolder, lookAtFolder } from "./doctor/folders.ts";
import { renderPolicyNews } from "./adopt-policy.ts";
import { keepPolicy, refuseMissing } from "./policy-keeper.ts";
import {
  type CallTallies,
  createTallies,
  processName,
  readProcesses,
  startPresence,
} from "./presence.ts";

export type Services = Awaited<ReturnType<typeof openServices>>;

/** What differs in tests and sandboxes. */
export interface Otherwise {
  /** Failpoint for crash tests. */
  at?: (point: string, what: string) => Promise<void>;
  /** Keeps several installations apart on one Redis. */
  namespace?: string;
  /** Whose signatures on evidence count: the vendors' without it. */
  roots?: TrustedRoots;
  /** Slack's limits, where they are others than Slack's own. */
  slackLimits?: SlackLimits;
}

interface ServicesOptions extends Otherwise {
  telemetry: Telemetry;
  /** What is opened first is closed last. */
  opened<T extends { close(): Promise<unknown> }>(thing: T): T;
}

/** Messages under way at a time in one process: most of them wait for Slack's answer. */
const messagesAtOnce = 20;
/** How long messages may still be delivered while a process stops. */
const lastMessagesMs = 3_000;

export async function openServices(config: Config, log: Log, options: ServicesOptions) {
  // What is built here keeps these until the process starts anew
  const { timing, attestation } = config.policy;
  const { opened, at, telemetry } = options;
  const key = createKeys(options.namespace);
  const connected = async (name: Parameters<typeof connectRedis>[1]) => {
    const how = { namespace: key.namespace, certificate: () => config.redisCertificate };
    const client = await connectRedis(() => config.redisUrl, name, log, how);
    opened({ close: () => client.quit() });
    return client;
  };
  const redis = await connected("commands");
  const on = { config, log, redis, key, at };
  const redisCheck = await checkRedis(redis, { allowVolatile: config.allowVolatileRedis });
  if (redisCheck.kind === "volatile" && !redisCheck.allowed)
    throw redisCheck.mayPass
      ? new UserError(redisCheck.sentence)
      : new ConfigError([`REDIS_URL: ${redisCheck.sentence}`]);
  await takeFormat(redis, key, { dataDir: config.dataDir, beatMs: timing.heartbeatMs });
  // Before anything is done by the rules of a process that has none
  await refuseMissing(on);
  const storageProblemsNow = async () =>
    storageProblems(await storageOf(redis), config.redisReplicas);
  for (const problem of await storageProblemsNow()) log.warn("redis.storage", { ...problem });
  const watch = createDependencyProbe(
    timing.outageMs,
    async ({ userId, teamId }) => (await people.person(userId, teamId)).name,
  );
  const tallies = createTallies();
  const clock = createClock(log);
  const calls = observeCalls({ telemetry, watch, tallies });
  const slack = createWeb({
    token: () => config.slack.botToken,
    refreshToken: () => config.files.get("SLACK_BOT_TOKEN")?.reread(),
    apiUrl: config.slack.apiUrl,
    log,
    onCall: calls.slack,
  });
  const { web, refusal } = createSharedChannels({
    web: slack,
    allowed: () => config.policy.sharedChannels,
    log,
  });
  const { receive } = config.slack;
  const appToken = receive?.mode === "socket" ? receive.secret : undefined;
  const identity = opened(learnIdentity(web, { appToken }));
  const people = createPeople({
    web,
    shared: createSharedAnswer({
      redis,
      key,
      name: "user-groups",
      changes: groupChangesKey(key),
      secret: () => config.slack.botToken,
    }),
    home: identity.known,
    groupIds: () => groupsNamedIn(config.policy),
    cacheMs: timing.peopleCacheMs,
  });
  const compute = opened(connectCompute(config, { log, onCall: calls.compute }));
  const inventory = opened(
    createInventory({ ...on, compute, refreshMs: timing.inventoryRefreshMs, concurrency: 32 }),
  );
  inventory.start();
  const { refresh: addresses, endorsements: folder } = attestation;
  for (const { is, what, mend, about = [] } of judgeFolder(lookAtFolder(attestation))) {
    const why = config.policyFile.placeOf([about].flat()) + what;
    if (is !== "well")
      log[is === "ill" ? "warn" : "info"]("endorsements.folder", { why, hint: mend });
  }
  const roots = options.roots ?? vendorRoots;
  const refresher =
    addresses && folder !== undefined
      ? opened(createRefresher({ folder, addresses, roots, log, now: Date.now }))
      : undefined;
  const trail = createTrail(redis, key);
  const pinTrail: PinTrail = {
    find: trail.find,
    async alarm(name, record) {
      if (await trail.appendOnce(name, record)) log.error("pin.forged", record);
    },
  };
  const judge = createAppraiser({
    config,
    compute,
    register: createEvidenceRegister(redis, key),
    accepted: createAcceptedPins({ ...on, trail: pinTrail, secret: () => config.slack.botToken }),
    roots,
    refresher,
    now: Date.now,
  });
  const snapshots = createSnapshots(redis, key);
  const queues = opened(createQueues(redis, key.prefix, clock.now));
  await queues.ready();

  const { apiUrl } = config.slack;
  const person = async (userId: string) => people.person(userId, identity.known().teamId);
  const notices = createNotices({
    ...on,
    render: (facts) =>
      renderPolicyNews(facts, { store, web, log, person, groupNames: people.groupNames }),
  });
  const tell: GatewayContext["tell"] = async (where, id, message) => {
    const channelId = config.policy[where]?.channel;
    if (channelId) await notices.announce({ id, channelId, message });
  };
  const journal = observed(createJournal(redis, key), { log, telemetry });
  const tellBusy: GatewayContext["tellBusy"] = async (id, message) => {
    await tell("audit", id, message);
    for (const channelId of await busyChannels(journal))
      if (channelId !== config.policy.audit?.channel)
        await notices.announce({ id: `${id}-${channelId}`, channelId, message });
  };
  const store: typeof journal = {
    ...journal,
    /** Every freeze is announced, where people wait for something. */
    async freeze(freeze) {
      const isNew = await journal.freeze(freeze);
      if (isNew) await tellBusy(`freeze-${await journal.now()}`, freezeNews(freeze));
      if (isNew) await showFreeze();
      return isNew;
    },
    async thaw(by) {
      const isThawed = await journal.thaw(by);
      if (isThawed) await showFreeze();
      return isThawed;
    },
  };
  const polls = createPolls(redis, key, journal.latest);
  const feeds = createFeeds({ ...on, render: renderFeed });
  const subscriptions = createSubscriptions({ ...on, post: feeds.post });
  const drift = createDriftRecords(redis, key);
  const appraiser = rememberVerdicts(judge, {
    records: drift,
    alarms: createAlarms({ config, announce: notices.announce }),
    follow: subscriptions.follow,
    inventory,
    log,
    now: Date.now,
  });
  const attestationNote = createAttestationNote({ config, appraiser, failure: drift.failure, log });
  async function projectName(id: string): Promise<string | undefined> {
    const known = await inventory.findProject(id, { onlyKnown: true });
    return "found" in known && known.found.id === id ? known.found.name : undefined;
  }
  const elsewhere = {
    attestationNote,
    projectName,
    linkTo: (message: { channelId: string; ts: string } | undefined) => linkTo(message, { web }),
    follow: subscriptions.follow,
  };
  const rollouts = createRollouts(redis, key);
  const alerts = createAlerts(redis, key);
  const proposals = createProposals(redis, key, at);
  /** On the cards whose buttons it takes away, and gives back. */
  const showFreeze = () => Promise.all([alerts.refresh(), proposals.refresh()]);
  const changes = requestable(commands);
  const posting = {
    ...on,
    store,
    web,
    apiUrl,
    inventory,
    commands: changes,
    attestationNote,
    editMs: timing.editMs,
    onTold: observeTold({ log, telemetry }),
  };
  const seenAround = { journal: store, inventory, commands: changes };
  const askingAbout = (target: Parameters<typeof askingAboutTarget>[0]) =>
    askingAboutTarget(target, seenAround);
  const requests = requestSource({
    ...posting,
    around: { changesSince: (request) => changesSince(request, seenAround), askingAbout },
    tellElsewhere: (request, command) => tellElsewhere(request, command, elsewhere),
    recordResults: async (request, command) => {
      await recordResults(request, command, {
        snapshots,
        inventory,
        tellAudit: (id, message) => tell("audit", id, message),
        attestation: (vm) => attestationInWords(appraiser, vm, timing.httpTimeoutMs),
      });
      const { id, origin } = request.record;
      if (origin.kind === "alert") await alerts.note(origin.alert, id);
    },
  });
  const delivery = deliveryWork(
    [
      requests,
      sharedCardSource(posting),
      rolloutSource({ ...posting, rollouts }),
      alertSource({ ...posting, alerts, compute, commands }),
      heldAlerts({ alerts }),
      proposalSource({ ...posting, proposals }),
      notices.source,
      feeds.source,
    ],
    {
      ...posting,
      refusal,
      rateLimiter: createRateLimiter(redis, key, options.slackLimits, calls.wait),
      now: store.now,
      us: identity.known,
    },
  );
  const outages = createOutageStore(redis, key);
  const report = () => watch.report(outages).catch(() => undefined); // it is told once Redis is back
  opened(repeatHere("outages", reportEveryMs(timing.outageMs), report, log));
  const recaps = recapWork({
    ...posting,
    outages,
    announce: notices.announce,
    outageMs: timing.outageMs,
  });
  const messages = [...delivery, recaps];
  async function addJob(kind: PendingKind, id: string): Promise<void> {
    await at?.(`${kind}:pending`, id);
    // Without Redis its connection tells of it, and the relay makes up for it
    await queues.wake(kind, id).catch(() => undefined);
    await at?.(`${kind}:job`, id);
  }
  const work = [store.steps, rollouts.steps, polls.pending, store.lates];
  for (const pending of [...work, ...messages.map((one) => one.pending)])
    pending.onWake((id) => void addJob(pending.kind, id));
  opened(startRelay({ redis, key, queues, everyMs: timing.sweepMs / 2, log }));
  const delivering = startPendingWork(messages, {
    queue: queues.messages,
    wake: queues.wake,
    connection: await connected("worker"),
    prefix: key.prefix,
    concurrency: messagesAtOnce,
    heartbeatMs: timing.heartbeatMs,
    log,
  });
  opened({ close: () => delivering.close(lastMessagesMs) });
  const policyKeeper = opened(
    await keepPolicy({
      ...on,
      telemetry,
      store,
      people,
      announce: notices.announce,
      wakeNotice: notices.source.outbox.wake,
    }),
  );
  const presence = opened(
    await startPresence({
      ...on,
      role: config.role,
      dataDir: config.dataDir,
      tallies,
      clock,
      beatMs: timing.heartbeatMs,
    }),
  );
  const taking = createTaking(clock);
  taking.add(delivering, { untilClosed: true });
  return {
    ...on,
    policyKeeper,
    telemetry,
    connected,
    redisCheck,
    storageProblemsNow,
    store,
    polls,
    rollouts,
    alerts,
    proposals,
    web,
    identity,
    people,
    compute,
    appraiser,
    inventory,
    projectName,
    snapshots,
    queues,
    tell,
    tellBusy,
    announce: notices.announce,
    answerNotices: notices.answer,
    attestationNote,
    askingAbout,
    subscriptions,
    watch,
    outages,
    tallies,
    clock,
    taking,
    presence,
    opened,
  };
}

/**
 * The form of all that is kept in Redis while requests are open. Any change of it has a new number: then processes of both
 * neither read nor write the same records. Ledgers and sealed records of every format stay readable.
 */
export const storedFormat = "5";

/**
 * Takes Redis for this format, or throws a ConfigError while it belongs to another: requests of that are open, or processes of it
 * run. `dataDir`: what ran there before has ended.
 */
export async function takeFormat(
  redis: RedisClient,
  key: Keys,
  { dataDir, beatMs }: { dataDir: string; beatMs: number },
): Promise<void> {
  const held = await redis.set(key("format"), storedFormat, "NX", "GET");
  if (held === null || held === storedFormat) return;
  const [open, processes, workers] = await Promise.all([
    redis.zcard(key("requests", "open")),
    readProcesses(redis, key, beatMs),
    countWorkers(redis, key),
  ]);
  const own = processName(dataDir);
  const others = processes.filter(({ name, isMissing }) => !isMissing && name !== own);
  // Releases before this one report their workers alone
  const running = Math.max(others.length, workers);
  if (open === 0 && running === 0) {
    await redis.set(key("format"), storedFormat);
    return;
  }
  const facts = `${counted(open, "open request")} and ${counted(running, "running process", "running processes")}`;
  throw new ConfigError([
    `Redis holds stored format ${held} with ${facts}; this version of Gatehouse stores format ${storedFormat}. Freeze changes, let the open requests end, stop all processes of the other version, then start this one`,
  ]);
}

/**
 * What is counted, traced, and told the watch over outages of calls to Slack and to the compute service; and what is counted of
 * waits for Slack's limits.
 */
function observeCalls({
  telemetry,
  watch,
  tallies,
}: Pick<ServicesOptions, "telemetry"> & { watch: DependencyProbe; tallies: CallTallies }) {
  /** A call that just ended, named as its metrics are. */
  function called(name: string, outcome: string, ms: number, status?: number): void {
    const endMs = Date.now();
    const attributes = { outcome, ...(status && { "http.response.status_code": status }) };
    const failed = outcome === "ok" ? undefined : outcome;
    recordSpan({ name, kind: "client", startMs: endMs - ms, endMs, attributes, failed });
  }

  return {
    slack(method: string, outcome: Parameters<typeof signOfSlack>[1], ms: number): void {
      telemetry.slackCalls.inc({ method, outcome });
      telemetry.slackSeconds.observe({ method }, ms / 1000);
      called(`slack ${method}`, outcome, ms);
      watch.saw("slack", signOfSlack(method, outcome));
      tallies.saw("slack", outcome === "ok" || outcome === "refused" ? undefined : outcome);
    },
    compute({ endpoint, kind, reason, durationMs, status }: CallReport): void {
      const outcome = kind ?? "ok";
      telemetry.computeCalls.inc({ endpoint, outcome });
      telemetry.computeSeconds.observe({ endpoint }, durationMs / 1000);
      called(endpoint, outcome, durationMs, status);
      watch.saw("service", signOfService(endpoint, kind, reason));
      if (reason !== "aborted") tallies.saw("service", howItFailed({ kind, status }));
    },
    wait(limit: LimitName, ms: number): void {
      if (ms > 0) telemetry.limitWaits.observe({ limit }, ms / 1000);
    },
  };
}

/** In a word, of a call to the compute service; undefined where the answer is one of a service that works. */
function howItFailed({
  kind,
  status,
}: {
  kind: CallReport["kind"];
  status: number | undefined;
}): string | undefined {
  if (kind === undefined) return undefined;
  const isTrouble = status === undefined || status >= 500 || [401, 403, 429].includes(status);
  if (isTrouble) return status === undefined ? kind : String(status);
  return kind === "unexpected" || kind === "unclear" ? kind : undefined;
}

/**
 * From now on what speaks to Slack and to vendors goes through the proxies: Slack's Web API, uploads, and endorsements use the
 * dispatcher of this process by themselves, the gateway hands it to the WebSocket. The client of the compute service has its own connections (`proxyFor`).
 */
export function useProxies(proxies: Proxies): void {
  setGlobalDispatcher(new EnvHttpProxyAgent({ allowH2: false, ...proxyOptions(proxies) }));
}

/** A client of the compute service as the configuration says. */
export function connectCompute(
  { compute, proxies, files, policy }: Config,
  options: Pick<ComputeOptions, "log" | "onCall">,
): Compute {
  return createCompute({
    ...options,
    baseUrl: compute.url,
    apiKey: () => compute.apiKey,
    refreshKey: () => files.get("COMPUTE_API_KEY")?.reread(),
    timeoutMs: policy.timing.httpTimeoutMs,
    allowPrivate: compute.allowPrivate,
    tls: compute.tls,
    proxy: proxyFor(compute.url, proxies),
  });
}
