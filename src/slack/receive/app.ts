import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { App, type Receiver } from "@slack/bolt";
import type { Dispatcher } from "undici";
import { type Live, currentValue } from "../../config/changing-file.ts";
import { slackLogger } from "../../log/slack-logger.ts";
import type { Interactions } from "../../queue/interactions.ts";
import type { RedisClient } from "../../redis/redis.ts";
import type { BotIdentity } from "../people/identity.ts";
import { type Web, clientOptions } from "../web.ts";
import { type DeliveryOptions, createDeliveries } from "./deliveries.ts";
import { type HttpRefusal, createHttpReceiver } from "./http-receiver.ts";
import type { Interaction } from "./interaction.ts";
import { type ListenedTo, registerListeners } from "./listeners.ts";
import { createProcessEvent } from "./process-event.ts";
import { type RefusedDelivery, refuseForeign } from "./refuse-foreign.ts";
import { createReply } from "./reply.ts";
import { createSocketReceiver } from "./socket-receiver.ts";

interface SlackAppOptions extends Pick<DeliveryOptions, "handlers" | "log" | "onStored"> {
  identity: BotIdentity;
  interactions: Interactions;
  /** For BullMQ's blocking reads: a connection of their own. */
  connection: RedisClient;
  names: ListenedTo;
  botToken: Live;
  /** With it: Socket Mode. */
  appToken?: Live | undefined;
  /** Without an app token: HTTP. */
  signingSecret?: Live | undefined;
  apiUrl: string;
  /** For Socket Mode through a proxy. */
  dispatcher?: Dispatcher | undefined;
  web: Web;
  now?: () => number;
  onAck?: (kind: string, ms: number) => void;
  /** A delivery was rejected: for the security counter. */
  onRefused?: (reason: HttpRefusal | RefusedDelivery["reason"] | "unhandled") => void;
  /** Slack accepted an answer nowhere. */
  onLostReply?: (interaction: Interaction) => Promise<void>;
}

/** Bolt's App: receives, acknowledges, and hands interactions to `handlers`. */
export function createSlackApp(options: SlackAppOptions) {
  const { interactions, identity, apiUrl, log, appToken, now = Date.now } = options;
  const deliveries = createDeliveries({
    ...options,
    replyTo: (interaction) => createReply({ ...options, interaction }),
  });
  // Bolt gives a receiver its App when that is made
  const delivery: { app?: App } = {};
  const { processEvent, inHand } = createProcessEvent({
    ...options,
    app: { processEvent: async (event) => delivery.app?.processEvent(event) },
  });
  const { signingSecret = "" } = options;
  const socket = appToken
    ? createSocketReceiver({ ...options, processEvent, appToken })
    : undefined;
  const http = appToken
    ? undefined
    : createHttpReceiver({ ...options, processEvent, signingSecret });
  const receiver: Receiver = {
    init: (app) => void (delivery.app = app),
    start: async () => socket?.start(),
    async stop() {
      http?.close();
      await socket?.close();
    },
  };
  const app = new App({
    receiver,
    authorize: async () => ({ ...identity, botToken: currentValue(options.botToken) }),
    clientOptions: clientOptions({ apiUrl, log }),
    logger: slackLogger(log),
    convoStore: false,
  });
  // It is logged once, where the delivery ends
  app.error(async (error) => {
    throw error;
  });
  app.use(refuseForeign(identity, now));
  registerListeners(app, { ...options, deliveries });

  const { connection } = options;
  const recovering = interactions.startRecovering({ connection, handle: deliveries.recover });

  return {
    /** What dead gateways left is taken while it isn't held. */
    recovering,
    /** Socket Mode: resolves with the first connection, or with `close`. HTTP: immediately. */
    start: async (): Promise<void> => void (await app.start()),
    /** HTTP: answers Slack's path, false for every other. */
    route: (request: IncomingMessage, response: ServerResponse) =>
      http?.route(request, response) ?? false,
    /** Why Slack isn't connected; undefined while it is, and over HTTP. */
    problem: () => socket?.problem(),
    running: () => deliveries.running(),
    /**
     * Stops listening, sends pending acknowledgments, then waits for running handlers. Resolves with how many still run at the
     * deadline; another gateway takes those over.
     */
    async close(deadlineMs: number): Promise<number> {
      const began = performance.now();
      const leftMs = () => Math.max(0, deadlineMs - (performance.now() - began));
      await recovering.hold();
      http?.close();
      // Once the connection closes no acknowledgment can be sent, and Slack doesn't redeliver commands.
      for (let tries = 0; inHand() > 0 && tries < 50; tries += 1) await delay(20);
      await app.stop();
      const left = await deliveries.idle(leftMs());
      await recovering.close(leftMs());
      await interactions.close();
      return left;
    },
  };
}
