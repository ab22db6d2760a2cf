import type { Config } from "../config/config.ts";
import { isChannel } from "../core/cards/render-result.ts";
import { askingAbout as askingAboutTarget, changesSince } from "../core/cards/since-request.ts";
import {
  type ToldResult,
  type createAttestationNote,
  noteOutcome,
} from "../core/deliver/after-result.ts";
import { messageWork } from "../core/deliver/deliver.ts";
import type { createNotices } from "../core/deliver/notices.ts";
import { type SlackLimits, createRateLimiter } from "../core/deliver/rate-limiter.ts";
import { requestSource } from "../core/deliver/requests.ts";
import { sharedCardSource } from "../core/deliver/shared-cards.ts";
import { createFactsAfter } from "../core/facts/facts-about.ts";
import { seenWith } from "../core/permit/sight.ts";
import type { NameOf } from "../core/permit/access.ts";
import type { Journal } from "../core/request/journal.ts";
import { observeTold } from "../core/request/observe-journal.ts";
import type { Polls } from "../core/request/polls.ts";
import type { StoredRequest } from "../core/request/stored-request.ts";
import type { Inventory } from "../fleet/inventory/inventory.ts";
import type { Log } from "../log/log.ts";
import type { Telemetry } from "../log/telemetry.ts";
import type { Message } from "../messages/blocks.ts";
import { countWorkers } from "../queue/heartbeat.ts";
import type { Queues } from "../queue/queues.ts";
import type { Keys, RedisClient, RedisPurpose } from "../redis/redis.ts";
import type { ChangeCommand, Command, Target } from "../registry/define.ts";
import { emergencyWordsOf } from "../registry/emergency.ts";
import { freezeNewsWork } from "./announcements.ts";
import type { Clock } from "./clock.ts";
import type { observeCalls } from "./observe-calls.ts";
import type { openSlack } from "./open-slack.ts";
import type { Opened } from "./opened.ts";
import { startJobs } from "./start-jobs.ts";
import type { startFeatures } from "./start-features.ts";

/** The parts that messages are made of, and that post them. */
interface MessageParts {
  config: Config;
  log: Log;
  telemetry: Telemetry;
  redis: RedisClient;
  key: Keys;
  connected(purpose: RedisPurpose): Promise<RedisClient>;
  opened: Opened;
  at: ((point: string, subject: string) => Promise<void>) | undefined;
  slackLimits: SlackLimits | undefined;
  commands: readonly Command[];
  /** The commands that make requests. */
  changes: readonly ChangeCommand[];
  store: Journal;
  polls: Polls;
  inventory: Inventory;
  slack: ReturnType<typeof openSlack>;
  /** Reads the names of people and groups. */
  namesOf(ids: readonly string[]): Promise<NameOf>;
  attestationNote: ReturnType<typeof createAttestationNote>;
  notices: ReturnType<typeof createNotices>;
  /** Posts a message once, where people are stopped by a freeze. */
  tellStopped(id: string, message: Message): Promise<void>;
  features: ReturnType<typeof startFeatures>;
  queues: Queues;
  calls: ReturnType<typeof observeCalls>;
  clock: Pick<Clock, "now">;
}

/**
 * Opens the sources of all messages that Gatehouse owes to Slack, and what posts them. Messages are
 * posted once `take` was called on `messageJobs`.
 */
export async function openMessages(on: MessageParts) {
  const { config, log, redis, key, store, inventory, slack, features, calls } = on;
  const { timing } = config.policy;
  const factsAfter = createFactsAfter({ sources: () => features.facts, log, now: on.clock.now });
  const seenAround = { journal: store, inventory, commands: on.changes };
  const askingAbout = (target: Target) => askingAboutTarget(target, seenAround);
  const observe = observeTold(on);
  const posting = {
    ...on,
    web: slack.web,
    apiUrl: config.slack.apiUrl,
    commands: on.changes,
    offered: on.commands,
    async factsAfter(request: StoredRequest) {
      const sees = seenWith(request.record.target, config.policy);
      return factsAfter(request, async (targets) => sees(targets));
    },
    editMs: timing.editMs,
    onTold(results: readonly ToldResult[], channelId: string) {
      observe(results);
      if (!isChannel(channelId)) return;
      for (const { request, note } of results)
        if (note?.failure)
          void features.emit("failurePosted", request.record.target, note.failure.mark);
    },
  };
  const requests = requestSource({
    ...posting,
    hasWorker: async () => (await countWorkers(redis, key)) > 0,
    emergency: emergencyWordsOf.ifAny(features),
    changesSince: (request) => changesSince(request, seenAround),
    askingAbout,
    tellElsewhere: (request, command) => features.emit("resultPosted", request, command),
    recordResults: async (request, command) => {
      await noteOutcome(request, command, inventory);
      await features.emit("requestEnded", request, command);
    },
  });
  const sources = [requests, sharedCardSource(posting), ...features.messages, on.notices.source];
  const delivery = messageWork(sources, {
    ...posting,
    refusal: slack.refusal,
    rateLimiter: createRateLimiter(redis, key, on.slackLimits, calls.wait),
    now: store.now,
    us: slack.identity.known,
    retryMs: timing.messageRetryMs,
  });
  const freezes = freezeNewsWork({
    ...on,
    journal: store,
    changed: () => features.emit("freezeChanged"),
  });
  const messageJobs = await startJobs({
    ...on,
    messages: [...delivery, freezes, ...features.work.inProcesses],
    steps: [store.steps, ...features.work.inWorkers.map(({ pending }) => pending)],
    polls: [on.polls.pending, store.lates],
  });
  return { sources, messageJobs, factsAfter, askingAbout };
}
