import type { ReadContext } from "../commands/context.ts";
import type { Config } from "../config/config.ts";
import { createFactsAbout } from "../core/facts/facts-about.ts";
import { createDriftRecords } from "../monitor/drift-records.ts";
import { createStatusRecords } from "../monitor/status-records.ts";
import type { Feature } from "../features/define-feature.ts";
import { createInventory } from "../fleet/inventory/create-inventory.ts";
import { createSnapshots } from "../fleet/inventory/snapshots.ts";
import type { Log } from "../log/log.ts";
import { type LogLoss, noLoss } from "../log/output.ts";
import type { Telemetry } from "../log/telemetry.ts";
import { createDependencyProbe } from "../monitor/dependency-probe.ts";
import { createQueues } from "../queue/queues.ts";
import { requestSync } from "../queue/schedules.ts";
import { repeatHere } from "../redis/repeat.ts";
import { type Command, requestable } from "../registry/define.ts";
import { createAttestationNote } from "../core/deliver/after-result.ts";
import { createJournal, keepEvidence } from "../core/request/journal.ts";
import { observed } from "../core/request/observe-journal.ts";
import { createPolls } from "../core/request/polls.ts";
import { createNotices } from "../core/deliver/notices.ts";
import type { SlackLimits } from "../core/deliver/rate-limiter.ts";
import { type TrustedRoots, vendorRoots } from "../verifier/roots.ts";
import { renderPolicyNews } from "./adopt-policy.ts";
import { readNames } from "../slack/people/names.ts";
import { createAnnouncements } from "./announcements.ts";
import { redisProblem } from "./checks/redis.ts";
import { createClock, createSlackClock, createTaking } from "./clock.ts";
import { connectCompute } from "./connect-compute.ts";
import { observeCalls } from "./observe-calls.ts";
import { takeInstallation } from "./installation.ts";
import { openAppraiser } from "./open-appraiser.ts";
import { openMessages } from "./open-messages.ts";
import { openRedis } from "./open-redis.ts";
import { openSlack } from "./open-slack.ts";
import type { Opened } from "./opened.ts";
import { keepPolicy, refuseMissing } from "./policy-keeper.ts";
import { createTallies, startPresence } from "./presence.ts";
import { startFeatures } from "./start-features.ts";
import type { Message } from "../messages/blocks.ts";
import { withAppraisalsTold } from "../attestation/appraiser.ts";

export type Services = Awaited<ReturnType<typeof openServices>>;

/** Overrides for tests and the sandbox. */
export interface Overrides {
  /** Failpoint for crash tests. */
  at?: (point: string, subject: string) => Promise<void>;
  /** The trusted roots for evidence. By default the vendors'. */
  roots?: TrustedRoots;
  /** What the log lost. By default nothing. */
  logLoss?: () => LogLoss;
  /** Limits that replace Slack's own. */
  slackLimits?: SlackLimits;
}

interface ServicesOptions extends Overrides {
  features: readonly Feature[];
  /** Includes the commands of features. */
  commands: readonly Command<ReadContext>[];
  telemetry: Telemetry;
  opened: Opened;
}

/**
 * The composition root: opens what every process has, whatever its role. Each part gets the parts
 * above it that it needs.
 */
export async function openServices(config: Config, log: Log, options: ServicesOptions) {
  const { opened, at, telemetry, commands } = options;
  // Everything that is built here keeps this timing until the process restarts.
  const { timing } = config.policy;
  const { connected, ...stored } = await openRedis(config, { log, opened });
  const { redis, key } = stored;
  const on = { config, log, redis, key, at, opened, telemetry };
  // Refuses to start without a policy file before any work is taken.
  await refuseMissing(on);

  const clock = createClock(log);
  const taking = createTaking(clock);
  const tallies = createTallies();
  const watch = createDependencyProbe(
    timing.outageMs,
    async ({ userId, teamId }) => (await slack.people.person(userId, teamId)).name,
  );
  const calls = observeCalls({ telemetry, watch, tallies });

  const slackClock = createSlackClock();
  const slack = openSlack({ ...on, onCall: calls.slack, onDate: slackClock.compare });
  const { web, people, identity } = slack;
  const { confirmed } = await takeInstallation(redis, key, {
    botToken: () => config.slack.botToken,
    identity: identity.learned,
  });
  const compute = opened(connectCompute(config, { log, onCall: calls.compute }));
  const inventory = opened(
    createInventory({
      ...on,
      compute,
      refreshMs: timing.inventoryRefreshMs,
      againMs: timing.inventoryAgainMs,
      concurrency: 32,
    }),
  );
  inventory.start();
  const snapshots = createSnapshots(redis, key);
  const judge = openAppraiser({ ...on, compute, roots: options.roots ?? vendorRoots });
  const queues = opened(createQueues(redis, key.prefix, clock.now));
  await queues.ready();

  const namesOf = (ids: readonly string[]) => readNames(ids, { ...people, ...slack, log });
  const notices = createNotices({
    ...on,
    answeredForAll: () => running.contributed.answeredForAll,
    render: (facts) => renderPolicyNews(facts, { ...people, ...slack, store, log }),
  });
  const { announce, owed } = notices;
  const store = observed(createJournal(redis, key), { log, telemetry });
  const { announceIn, tellStopped } = createAnnouncements({ config, journal: store, announce });
  const tellAudit = (id: string, message: Message) => announceIn("audit", id, message);
  const polls = createPolls(redis, key, store.latest);

  const drift = createDriftRecords(redis, key);
  const appraiser = withAppraisalsTold(judge, (vm, appraisal) =>
    running.emit("appraised", vm, appraisal),
  );
  const attestationNote = createAttestationNote({
    config,
    commands,
    appraiser,
    failure: drift.failure,
    keep: (id, note) => keepEvidence(id, note, store),
    log,
  });

  async function projectName(id: string): Promise<string | undefined> {
    const known = await inventory.findProject(id, { onlyKnown: true });
    return "record" in known && known.record.id === id ? known.record.name : undefined;
  }
  const changes = requestable(commands);
  const stopping = new AbortController();
  const factsAbout = createFactsAbout({
    appraiser,
    statuses: createStatusRecords(redis, key),
    commands,
    sources: () => running.facts,
    log,
    now: clock.now,
  });
  const running = startFeatures(options.features, {
    now: clock.now,
    ...on,
    compute,
    inventory,
    commands,
    changes,
    store,
    snapshots,
    appraiser,
    web,
    announce,
    owed,
    tellAudit,
    attestationNote,
    factsAbout,
    watch,
    redisProblem: () => redisProblem(redis, key),
    projectName,
    schedulesChanged: () => requestSync(queues.schedules),
    namesOf,
    personName: async (id) => (await people.person(id, identity.known().teamId)).name,
    repeat: (name, everyMs, task) => void opened(repeatHere(name, everyMs, task, log)),
    follow: (news) => running.emit("troubleChanged", news),
    stopping: stopping.signal,
    editMs: timing.editMs,
  });
  const { sources, messageJobs, factsAfter, askingAbout } = await openMessages({
    ...on,
    connected,
    slackLimits: options.slackLimits,
    commands,
    changes,
    store,
    polls,
    inventory,
    slack,
    namesOf,
    attestationNote,
    notices,
    tellStopped,
    features: running,
    queues,
    calls,
    clock,
  });
  taking.add(messageJobs, { untilClosed: true });

  const policyKeeper = opened(
    await keepPolicy({ ...on, store, people, announce, wakeNotice: notices.source.outbox.wake }),
  );
  const presence = opened(
    await startPresence({
      ...on,
      role: config.role,
      dataDir: config.dataDir,
      tallies,
      logLoss: options.logLoss ?? noLoss,
      clock,
      slackClock,
      beatMs: timing.heartbeatMs,
    }),
  );
  return {
    ...on,
    ...stored,
    connected,
    clock,
    taking,
    tallies,
    presence,
    policyKeeper,
    watch,
    web,
    identity,
    /** The bot's identity, once these keys are known to be its app's. */
    confirmed,
    people,
    compute,
    inventory,
    projectName,
    snapshots,
    appraiser,
    attestationNote,
    factsAbout,
    factsAfter,
    askingAbout,
    queues,
    store,
    polls,
    sources,
    features: running,
    /** Aborted when the process stops, to end long reads. */
    stopping,
    commands,
    services: running.services,
    announceIn,
    announce,
    answerNotices: notices.answer,
  };
}
