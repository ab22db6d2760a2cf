import { afterAll, beforeAll, beforeEach } from "vitest";
import { startGatehouseSlack } from "../../../demo/world.ts";
import type { SandboxSlack } from "../../../sandbox/slack/sandbox-slack.ts";
import { type Log, createLog } from "../../../src/log/log.ts";
import { Interactions } from "../../../src/queue/interactions.ts";
import { createQueues } from "../../../src/queue/queues.ts";
import { connectRedis, createKeys } from "../../../src/redis/redis.ts";
import { readIdentity } from "../../../src/slack/people/identity.ts";
import { createSlackApp } from "../../../src/slack/receive/app.ts";
import type { InteractionHandlers, Interaction } from "../../../src/slack/receive/interaction.ts";
import { type Web, createWeb } from "../../../src/slack/web.ts";
import { testRedis } from "../../support/with-redis.ts";
import { listenLocally } from "./local-server.ts";

export interface GatewayOptions {
  mode?: "http" | "socket";
  handlers?: Partial<InteractionHandlers>;
  /** Called before the acknowledgment. */
  onStored?: (interaction: Interaction) => Promise<void>;
  /** Another gateway on the same Slack and Redis. */
  beside?: TestGateway;
  /** It counts as dead after five of these (ms). */
  heartbeatMs?: number;
  /** Instead of the shared Redis. */
  redisUrl?: string;
}

export interface TestGateway extends AsyncDisposable {
  slack: SandboxSlack;
  app: ReturnType<typeof createSlackApp>;
  web: Web;
  /** BullMQ's queue of interactions. */
  queue: ReturnType<typeof createQueues>["interactions"];
  namespace: string;
  redisUrl: string;
  /** What was handed to the handlers, in order. */
  handled: Interaction[];
  repeated: Interaction[];
  refused: string[];
  acks: { kind: string; ms: number }[];
  /** Log lines as printed. */
  lines: string[];
  /** Resolves when so many asks were handled. */
  handles(count: number): Promise<Interaction[]>;
  /** Cuts what Slack has sent, and waits for, over HTTP. */
  hangUp(): void;
  close(): Promise<void>;
}

/** One gateway for all tests of a file. Each begins with nothing noted, and sets the handlers that it needs. */
export function shareGateway() {
  const shared = { handlers: {} } as {
    gateway: TestGateway;
    handlers: Partial<InteractionHandlers> & Pick<GatewayOptions, "onStored">;
  };
  beforeAll(async () => {
    shared.gateway = await startGateway({
      onStored: async (interaction) => shared.handlers.onStored?.(interaction),
      handlers: {
        handleInteraction: async (...asked) => shared.handlers.handleInteraction?.(...asked),
        submitBeforeAck: async (form) => shared.handlers.submitBeforeAck?.(form),
        suggest: async (request) => (await shared.handlers.suggest?.(request)) ?? [],
        peopleChanged: (...changed) => shared.handlers.peopleChanged?.(...changed),
      },
    });
  });
  beforeEach(() => {
    shared.handlers = {};
    const { handled, repeated, refused, acks } = shared.gateway;
    for (const noted of [handled, repeated, refused, acks]) noted.length = 0;
  });
  afterAll(() => shared.gateway.close());
  return shared;
}

/** The sandbox Slack and our gateway on it, with handlers that only take note. */
export async function startGateway(options: GatewayOptions = {}): Promise<TestGateway> {
  const { mode = "http", beside } = options;
  const shared = await testRedis();
  const [namespace, redisUrl] = [
    beside?.namespace ?? shared.key.namespace,
    options.redisUrl ?? shared.url,
  ];
  const [handled, repeated, refused, acks, lines]: [
    Interaction[],
    Interaction[],
    string[],
    { kind: string; ms: number }[],
    string[],
  ] = [[], [], [], [], []];
  const log: Log = createLog({ level: "debug", write: (line) => void lines.push(line) });
  const redis = await connectRedis(redisUrl, "commands", log);
  const connection = await connectRedis(redisUrl, "worker", log);
  const key = createKeys(namespace);
  const queues = createQueues(redis, key.prefix);
  await queues.ready();
  const { interactions: queue } = queues;
  const interactions = new Interactions({
    queue,
    redis,
    key,
    log,
    heartbeatMs: options.heartbeatMs ?? 100,
    storeWithinMs: 500,
  });
  const slack =
    beside?.slack ??
    (await startGatehouseSlack({
      rateLimits: "off",
      app: { ackTimeoutMs: 90_000, triggerLifeMs: 90_000 },
    }));

  const route: { is?: ReturnType<typeof createSlackApp>["route"] } = {};
  const server = await listenLocally((request, response) => {
    if (!route.is?.(request, response)) response.writeHead(404).end();
  });
  if (mode === "http") slack.app.requestUrl = `${server.url}/slack/events`;

  const web = createWeb({ token: slack.app.botToken, apiUrl: slack.apiUrl, log });
  const identity = await readIdentity(web);
  if ("problem" in identity) throw new Error(identity.problem);
  const waiting: { count: number; resolve: (interactions: Interaction[]) => void }[] = [];
  const app = createSlackApp({
    apiUrl: slack.apiUrl,
    ...(mode === "http"
      ? { signingSecret: slack.app.signingSecret }
      : { appToken: slack.app.appToken }),
    identity: { ...identity, appId: slack.app.appId },
    web,
    botToken: slack.app.botToken,
    interactions,
    connection,
    onStored: options.onStored,
    names: { forms: ["reason"], shortcuts: ["restart-vm", "show-vms"], buttons: ["run", "vote"] },
    handlers: {
      repeated: async (interaction) => void repeated.push(interaction),
      submitBeforeAck: async () => undefined,
      giveUp: async () => undefined,
      peopleChanged: () => undefined,
      ...options.handlers,
      ...wrapHandle(options.handlers?.handleInteraction),
    },
    log,
    onAck: (kind, ms) => void acks.push({ kind, ms }),
    onRefused: (reason) => void refused.push(reason),
  });
  route.is = app.route;
  app.recovering.take();
  await app.start();

  function wrapHandle(
    handleInteraction: InteractionHandlers["handleInteraction"] = async () => undefined,
  ): Pick<InteractionHandlers, "handleInteraction"> {
    return {
      async handleInteraction(interaction, reply) {
        handled.push(interaction);
        for (const one of waiting) if (handled.length >= one.count) one.resolve(handled);
        await handleInteraction(interaction, reply);
      },
    };
  }

  async function close(): Promise<void> {
    await app.close(1_000);
    await server[Symbol.asyncDispose]();
    await queues.close();
    redis.disconnect();
    connection.disconnect();
    shared.redis.disconnect();
    if (beside === undefined) await slack.close();
  }

  return {
    slack,
    app,
    web,
    queue,
    namespace,
    redisUrl,
    handled,
    repeated,
    refused,
    acks,
    lines,
    handles(count) {
      const { promise, resolve } = Promise.withResolvers<Interaction[]>();
      if (handled.length >= count) resolve(handled);
      else waiting.push({ count, resolve });
      return promise;
    },
    hangUp: () => server.hangUp(),
    close,
    [Symbol.asyncDispose]: close,
  };
}
