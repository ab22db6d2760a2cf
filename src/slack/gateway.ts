import type { IncomingMessage, ServerResponse } from "node:http";
import type { Compute } from "../compute/compute.ts";
import type { Config, SlackReceive } from "../config.ts";
import type { Inventory } from "../inventory/inventory.ts";
import type { Snapshots } from "../inventory/snapshots.ts";
import type { Queues } from "../jobs/queues.ts";
import type { Log } from "../log.ts";
import type { Watch } from "../outages/watch.ts";
import type { Keys, RedisClient } from "../redis.ts";
import type { Command, StatusLine } from "../registry/define.ts";
import type { Store } from "../requests/store.ts";
import type { RollStore } from "../rolls/store.ts";
import type { Telemetry } from "../telemetry.ts";
import type { Announcer } from "./announce.ts";
import { createSlackApp } from "./app.ts";
import { createConversation } from "./conversation.ts";
import { createAuditAnswers } from "./audit.ts";
import type { Delivery } from "./deliver.ts";
import { createDigestDesk } from "./digest.ts";
import type { BotIdentity } from "./identity.ts";
import { createGroupNames } from "./group-names.ts";
import { createIntake, IntakeDown } from "./intake.ts";
import type { People } from "./people.ts";
import { sealResponseUrl } from "./response-url.ts";
import type { Talk } from "./talk.ts";
import { createUnheard } from "./unheard.ts";
import type { Web } from "./web.ts";
import { rememberRefused } from "./without-redis.ts";

export interface Gateway {
  /** HTTP mode: answers what Slack sends; false for every other path. */
  route(request: IncomingMessage, response: ServerResponse): boolean;
  /** Why Slack can't reach us, if it can't. */
  problem(): string | undefined;
  close(): Promise<void>;
}

const drainMs = 5000;

/** Listens to Slack and talks with people. Changes nothing at the service. */
export async function startGateway(options: {
  config: Config;
  receive: SlackReceive;
  identity: BotIdentity;
  redis: RedisClient;
  key: Keys;
  web: Web;
  people: People;
  store: Store;
  rolls: RollStore;
  inventory: Inventory;
  snapshots: Snapshots;
  compute: Compute;
  commands: readonly Command[];
  queues: Pick<Queues, "wake">;
  delivery: Pick<Delivery, "nudge">;
  status(): Promise<readonly StatusLine[]>;
  tell: Talk["tell"];
  announce: Announcer["announce"];
  watch: Pick<Watch, "refused" | "taken">;
  telemetry: Telemetry;
  log: Log;
  /** Named points between an ask and its request, for those who test by ending the process there. */
  at(point: "intake" | "ack" | "journal" | "enqueue", what: string): Promise<void>;
}): Promise<Gateway> {
  const { config, receive, identity, people, telemetry, log, at } = options;
  const { botToken, apiUrl } = config.slack;
  const { policy, policyVersion } = config;
  const talk: Talk = {
    ...options,
    apiUrl,
    policy,
    policyVersion,
    async wake(id) {
      await at("journal", id);
      await options.queues.wake(id);
      await at("enqueue", id);
    },
    nudge: options.delivery.nudge,
    nameOf: createGroupNames(options.web, log).nameOf,
    audit: createAuditAnswers({ ...options, dataDir: config.dataDir }),
    digest: createDigestDesk({ ...options, policy, apiUrl, ourTeamId: identity.teamId }),
    ourTeamId: identity.teamId,
    person: (userId, teamId, look) => people.person(userId, teamId, look),
    async membersOf(entries) {
      const groups = entries.filter((entry) => entry.startsWith("S"));
      const known = new Map<string, readonly string[]>();
      for (const group of groups) {
        const members = await people.members(group).catch(() => undefined);
        if (members) known.set(group, members);
      }
      return (group) => known.get(group);
    },
    seal: (url) => sealResponseUrl(url, botToken),
    now: Date.now,
  };
  const intake = createIntake({
    redis: options.redis,
    key: options.key,
    log,
    beatMs: policy.timing.heartbeatMs,
  });
  const conversation = createConversation(talk);
  const app = createSlackApp({
    settings: {
      botToken,
      apiUrl,
      ...(receive.mode === "socket"
        ? { appToken: receive.appToken }
        : { signingSecret: receive.signingSecret }),
    },
    identity,
    web: options.web,
    intake: {
      ...intake,
      async accept(ask, how) {
        const taken = await intake.accept(ask, how).catch((error: unknown) => {
          if (error instanceof IntakeDown) rememberRefused(ask, talk, options.watch);
          throw error;
        });
        options.watch.taken(ask.id);
        if (taken === "seen") telemetry.refusals.inc({ reason: "replay" });
        await at("intake", ask.id);
        return taken;
      },
    },
    handlers: {
      ...conversation,
      async handle(ask, reply) {
        await at("ack", ask.id);
        await conversation.handle(ask, reply);
      },
      peopleChanged: () => people.forget(),
    },
    log,
    onAck: (kind, ms) => telemetry.acked.observe({ command: kind }, ms / 1000),
    onRefused: (reason) => telemetry.refusals.inc({ reason }),
    unheard: createUnheard(options.announce),
    takeOverAfterMs: 5 * policy.timing.heartbeatMs,
  });
  // Slack may be away when we start: readiness tells, and the socket goes on trying
  void app.start().catch((error: unknown) => log.error("slack.start-failed", { error }));
  return {
    route: app.route,
    problem: () => (app.connected() ? undefined : `Slack: ${app.problem() ?? "not connected"}`),
    close: async () => {
      await app.close(drainMs);
    },
  };
}
