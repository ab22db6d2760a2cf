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
import { type DeliveryOptions, Deliveries } from "./deliveries.ts";
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
  /** A separate connection for BullMQ's blocking reads. */
  connection: RedisClient;
  names: ListenedTo;
  botToken: Live;
  /** Set for Socket Mode. */
  appToken?: Live | undefined;
  /** Used over HTTP, when there is no app token. */
  signingSecret?: Live | undefined;
  apiUrl: string;
  /** For Socket Mode through a proxy. */
  dispatcher?: Dispatcher | undefined;
  web: Web;
  now?: () => number;
  onAck?: (kind: string, ms: number) => void;
  /** Called when a delivery was rejected, for the security counter. */
  onRefused?: (reason: HttpRefusal | RefusedDelivery["reason"] | "unhandled") => void;
  /** Called when Slack accepted an answer in no way. */
  onLostReply?: (interaction: Interaction) => Promise<void>;
}

/** Creates Bolt's App, which receives, acknowledges, and passes interactions to `handlers`. */
export function createSlackApp(options: SlackAppOptions) {
  const { interactions, identity, apiUrl, log, appToken, now = Date.now } = options;
  const deliveries = new Deliveries({
    ...options,
    replyTo: (interaction) => createReply({ ...options, interaction }),
  });
  // Bolt passes the App to a receiver only when the App is created.
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
  // The error is logged once, where the delivery ends.
  app.error(async (error) => {
    throw error;
  });
  app.use(refuseForeign(identity, now));
  registerListeners(app, { ...options, deliveries, now });

  const { connection } = options;
  const recovering = interactions.startRecovering({
    connection,
    handleAbandoned: (stored, how) => deliveries.recover(stored, how),
  });

  return {
    /** Takes what dead gateways left, while it isn't on hold. */
    recovering,
    /**
     * In Socket Mode, resolves with the first connection or with `close`; over HTTP, immediately.
     */
    start: async (): Promise<void> => void (await app.start()),
    /** Over HTTP, answers requests to Slack's path. Returns false for every other request. */
    route: (request: IncomingMessage, response: ServerResponse) =>
      http?.route(request, response) ?? false,
    /** Why Slack isn't connected. Undefined while it is, and always over HTTP. */
    problem: () => socket?.problem(),
    running: () => deliveries.background.running(),
    /**
     * Stops listening, sends pending acknowledgments, then waits for running handlers. Resolves
     * with how many still run at the deadline; another gateway takes those over.
     */
    async close(deadlineMs: number): Promise<number> {
      const began = performance.now();
      const leftMs = () => Math.max(0, deadlineMs - (performance.now() - began));
      await recovering.hold();
      http?.close();
      // Once the connection closes, no acknowledgment can be sent, and Slack doesn't redeliver
      // commands.
      for (let tries = 0; inHand() > 0 && tries < 50; tries += 1) await delay(20);
      await app.stop();
      const left = await deliveries.background.idle(leftMs());
      await recovering.close(leftMs());
      await interactions.close();
      return left;
    },
  };
}
