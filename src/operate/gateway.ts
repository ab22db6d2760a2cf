import { getGlobalDispatcher } from "undici";
import { noteGroupChange } from "../audit/stored-policy.ts";
import type { Config, SlackReceive } from "../config/config.ts";
import { Interactions } from "../queue/interactions.ts";
import type { Queues } from "../queue/queues.ts";
import type { Telemetry } from "../log/telemetry.ts";
import { spanned } from "../log/traces.ts";
import type { DependencyProbe } from "../monitor/dependency-probe.ts";
import { createDriftRecords } from "../monitor/drift-records.ts";
import type { Keys, RedisClient, RedisPurpose } from "../redis/redis.ts";
import { createConversation, listenedTo } from "../talk/conversation.ts";
import type { GatewayContext } from "../talk/gateway-context.ts";
import { createLostReplies } from "../talk/lost-replies.ts";
import { groupNews, readGroupChange } from "../slack/people/group-news.ts";
import type { BotIdentity } from "../slack/people/identity.ts";
import { createPeopleNames } from "../slack/people/names.ts";
import type { People } from "../slack/people/people.ts";
import { groupsNamedIn } from "../slack/people/user-groups.ts";
import { createSlackApp } from "../slack/receive/app.ts";
import { everyoneNamed } from "../config/named-in-policy.ts";

export type Gateway = Awaited<ReturnType<typeof startGateway>>;

const drainMs = 5000;

type Records = "store" | "inventory" | "snapshots" | "services";
type Services = "web" | "compute" | "appraiser" | "commands" | "contributed" | "log";
type Known = "factsAbout" | "factsAfter";
type Words = "status" | "standstill" | "attestationNote";
type Told = "announceIn" | "announce" | "answerNotices";

/**
 * Starts a gateway, which receives from Slack and answers people. Workers, not gateways, change VMs
 * and projects. A gateway opens consoles, whose address only the person who pressed may read.
 */
export async function startGateway(
  options: {
    config: Config;
    receive: SlackReceive;
    identity: BotIdentity;
    redis: RedisClient;
    key: Keys;
    people: People;
    queues: Pick<Queues, "interactions">;
    connected: (purpose: RedisPurpose) => Promise<RedisClient>;
    watch: Pick<DependencyProbe, "refused" | "taken">;
    telemetry: Telemetry;
    /** `now` returns the time by Redis's clock (ms). */
    clock: { now(): number };
    /** Failpoints between an interaction and its request. */
    at: ((point: "stored" | "ack", subject: string) => Promise<void>) | undefined;
  } & Pick<GatewayContext, Records | Services | Known | Words | Told>,
) {
  const { config, receive, identity, redis, key, people, telemetry, log, at } = options;
  const { apiUrl } = config.slack;
  const { timing } = config.policy;
  const names = createPeopleNames({
    web: options.web,
    log,
    person: (id) => people.person(id, identity.teamId),
    groupNames: people.groupNames,
    usual: () => everyoneNamed(config.policy),
  });
  const lasting: Omit<GatewayContext, "policy" | "policyVersion"> = {
    ...options,
    apiUrl,
    ...names,
    trail: { redis, key, dataDir: config.dataDir },
    drift: createDriftRecords(redis, key),
    ourTeamId: identity.teamId,
    person: people.person,
    sees: async () => true,
    seesAll: async () => true,
    async membersOf(entries) {
      const groups = entries.filter((entry) => entry.startsWith("S"));
      const membersOrNothing = (group: string) => people.members(group).catch(() => undefined);
      const members = await Promise.all(groups.map(membersOrNothing));
      return (group) => members[groups.indexOf(group)];
    },
    now: options.clock.now,
  };
  const interactions = new Interactions({
    queue: options.queues.interactions,
    redis,
    key,
    heartbeatMs: timing.heartbeatMs,
    now: options.clock.now,
    log,
  });
  // Each interaction is handled by the policy that was in force when its handling began.
  const contextNow = (): GatewayContext => ({ ...lasting, ...config.policyFile.inForce });
  const conversation = createConversation(contextNow, options.contributed, options.watch);
  const app = createSlackApp({
    apiUrl,
    ...(receive.mode === "socket"
      ? { appToken: () => receive.secret }
      : { signingSecret: () => receive.secret }),
    dispatcher: config.proxies && getGlobalDispatcher(),
    identity,
    now: options.clock.now,
    web: options.web,
    botToken: () => config.slack.botToken,
    interactions,
    connection: await options.connected("worker"),
    names: listenedTo(options.contributed, options.commands),
    async onStored(interaction, isNew) {
      options.watch.taken(interaction.id);
      if (!isNew) telemetry.refusals.inc({ reason: "replay" });
      await at?.("stored", interaction.id);
    },
    handlers: {
      ...conversation,
      async handleInteraction(interaction, reply) {
        options.watch.taken(interaction.id);
        await at?.("ack", interaction.id);
        const { id, kind, userId } = interaction;
        const attributes = { interaction: id, person: userId };
        await spanned({ name: `handle ${kind}`, attributes }, () =>
          conversation.handleInteraction(interaction, reply),
        );
      },
      async peopleChanged(event, id) {
        const change = readGroupChange(event);
        // Other groups give nobody a right.
        if (!groupsNamedIn(config.policy).includes(change.groupId)) return;
        people.forget();
        await noteGroupChange(redis, key);
        // Answers that were cached in between may still be from the former shared answer.
        people.forget();
        const { groupId, came, left } = change;
        if (came.length + left.length === 0) return;
        await names.learnNames([groupId, ...came, ...left]);
        await options.announceIn("audit", `group-${id}`, groupNews(change, names.nameOf));
      },
    },
    log,
    onAck: (kind, ms) => telemetry.acked.observe({ command: kind }, ms / 1000),
    onRefused: (reason) => telemetry.refusals.inc({ reason }),
    onLostReply: createLostReplies(options.announce, contextNow),
  });
  // Slack may be unreachable at the start. Readiness shows that, and the socket keeps trying.
  void app.start().catch((error: unknown) => log.error("slack.start-failed", { error }));
  return {
    /** The context for conversations from now on. The API answers programs from the same one. */
    contextNow,
    /** Handles what dead gateways left, while it isn't on hold. */
    recovering: app.recovering,
    /** Over HTTP, answers what Slack sends. Returns false for every other path. */
    route: app.route,
    /** Why Slack isn't connected. Undefined while it is. */
    problem() {
      const problem = app.problem();
      return problem && `Slack: ${problem}`;
    },
    close: async () => void (await app.close(drainMs)),
  };
}
