import type { Dispatcher } from "undici";
import type { Interaction, Handlers } from "./interaction.ts";
import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import type { Live } from "../../config/changing-file.ts";
import { messageOf } from "../../errors.ts";
import { type Log, slackLogger } from "../../log/log.ts";
import { type DeliveryKind, GuardedApp } from "./guarded-app.ts";
import { createHandling } from "./handling.ts";
import { createSlackHttp, type HttpRefusal } from "./http.ts";
import type { BotIdentity } from "../people/identity.ts";
import type { Intake } from "./intake.ts";
import { createPrepare } from "./listeners.ts";
import { createReply } from "./respond.ts";
import { openResponseUrl, sealResponseUrl } from "../deliver/response-url.ts";
import { createSlackSocket } from "./socket.ts";
import { clientOptions, type Web } from "../web.ts";

interface SlackAppOptions {
  settings: {
    botToken: string;
    /** With it: Socket Mode. */
    appToken?: Live | undefined;
    /** Without an app token: HTTP. */
    signingSecret?: Live | undefined;
    apiUrl: string;
    /** For Socket Mode through a proxy. */
    dispatcher?: Dispatcher | undefined;
  };
  identity: BotIdentity;
  web: Web;
  intake: Intake;
  handlers: Handlers;
  log: Log;
  /** The time from receiving a delivery to sending its ack. */
  onAck?: (kind: DeliveryKind, ms: number) => void;
  /** A delivery was rejected: for the security counter. */
  onRefused?: (reason: HttpRefusal | "app" | "team") => void;
  /** Slack accepted an answer nowhere. */
  onLostReply?: (interaction: Interaction) => Promise<void>;
  /** How long a gateway may miss heartbeats before its interactions are taken over. */
  takeOverAfterMs?: number;
}

const recoverEveryMs = 5_000;

/** The Bolt app: receives, acknowledges, and hands interactions to `handlers`. */
export function createSlackApp(options: SlackAppOptions) {
  const { settings, identity, web, intake, handlers, log } = options;
  const { takeOverAfterMs = 15_000 } = options;
  const { botToken, appToken, signingSecret, apiUrl, dispatcher } = settings;
  const socket =
    appToken === undefined
      ? undefined
      : createSlackSocket({ ...options, appToken, apiUrl, dispatcher });
  const http =
    socket === undefined
      ? createSlackHttp({ ...options, signingSecret: signingSecret ?? "" })
      : undefined;
  const receiver = socket?.receiver ?? http?.receiver;
  if (receiver === undefined) throw new Error("neither an app token nor a signing secret");

  const handling = createHandling({
    handlers,
    intake,
    log,
    replyTo: (interaction) =>
      createReply({ web, interaction, apiUrl, log, onLostReply: options.onLostReply }),
    openUrl: (sealed) => openResponseUrl(sealed, botToken, apiUrl),
  });
  const prepare = createPrepare({
    us: identity,
    intake,
    handlers,
    handling,
    seal: (url: string) => sealResponseUrl(url, botToken),
    log,
    now: Date.now,
  });
  const app = new GuardedApp(
    {
      receiver,
      token: botToken,
      // With both given Bolt doesn't ask Slack for them, which would be an unhandled rejection when that fails.
      botId: identity.botId,
      botUserId: identity.botUserId,
      tokenVerificationEnabled: false,
      clientOptions: clientOptions({ apiUrl, log }),
      logger: slackLogger(log),
      // The default keeps a state for every conversation in memory, forever.
      convoStore: false,
      processBeforeResponse: false,
      ignoreSelf: true,
      attachFunctionToken: false,
    },
    {
      identity,
      log,
      prepare,
      onAck: options.onAck,
      onRefused: options.onRefused,
    },
  );
  // The default handler rejects, which becomes a 500 after the ack.
  app.error(async (error) => log.error("slack.listener-failed", { error }));

  let timer: NodeJS.Timeout | undefined;
  async function takeOver(): Promise<void> {
    try {
      for (const left of await intake.recover(takeOverAfterMs)) handling.takeOver(left);
    } catch (error) {
      log.debug("intake.not-recovered", { error: messageOf(error) });
    }
  }

  return {
    /** Socket Mode: resolves with the first connection, or with `close`. HTTP: immediately. */
    async start(): Promise<void> {
      await intake.start();
      void takeOver();
      timer ??= setInterval(
        () => void takeOver(),
        Math.min(recoverEveryMs, takeOverAfterMs),
      ).unref();
      await socket?.receiver.start();
    },
    /** HTTP: answers Slack's path, false for every other. */
    route: (request: IncomingMessage, response: ServerResponse) =>
      http?.route(request, response) ?? false,
    connected: () => socket?.connected() ?? true,
    problem: () => socket?.problem(),
    running: () => handling.running(),
    /**
     * Stops listening, sends pending acks, then waits for running handlers. Resolves with how many still run at the
     * deadline; another gateway takes those over.
     */
    async close(deadlineMs: number): Promise<number> {
      const began = performance.now();
      clearInterval(timer);
      http?.close();
      // Once the connection closes no ack can be sent, and Slack doesn't redeliver commands.
      for (let tries = 0; app.inHand > 0 && tries < 50; tries += 1) await delay(20);
      await socket?.close();
      const left = await handling.idle(Math.max(0, deadlineMs - (performance.now() - began)));
      await intake.close();
      return left;
    },
  };
}
