import type { Ask } from "./ask.ts";
import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { messageOf } from "../errors.ts";
import { type Log, slackLogger } from "../log.ts";
import { type DeliveryKind, FrontApp } from "./front.ts";
import type { Handlers } from "./handlers.ts";
import { createHandling } from "./handling.ts";
import { createSlackHttp, type HttpRefusal } from "./http.ts";
import type { BotIdentity } from "./identity.ts";
import type { Intake } from "./intake.ts";
import { addListeners, createTake } from "./listeners.ts";
import { createReply } from "./respond.ts";
import { openResponseUrl, sealResponseUrl } from "./response-url.ts";
import { createSlackSocket } from "./socket.ts";
import { clientOptions, type Web } from "./web.ts";

export interface SlackSettings {
  botToken: string;
  /** With it: Socket Mode. */
  appToken?: string | undefined;
  /** Without an app token: HTTP. */
  signingSecret?: string | undefined;
  apiUrl: string;
}

export interface SlackAppOptions {
  settings: SlackSettings;
  identity: BotIdentity;
  web: Web;
  intake: Intake;
  handlers: Handlers;
  log: Log;
  now?: () => number;
  /** From Slack's delivery in our hands to our ack sent. */
  onAck?: (kind: DeliveryKind, ms: number) => void;
  /** Something was not let in: for the security counter. */
  onRefused?: (reason: HttpRefusal | "app" | "team") => void;
  onConnected?: (isConnected: boolean) => void;
  onRateLimited?: () => void;
  /** An answer reached nobody, because Slack took it nowhere. */
  unheard?: (ask: Ask) => Promise<void>;
  /** After how long without a sign of life another gateway's asks are taken over. */
  takeOverAfterMs?: number;
}

export interface SlackApp {
  /** Socket Mode: resolves with the first connection, or with `close`. HTTP: at once. */
  start(): Promise<void>;
  /** HTTP: answers Slack's path, false for every other. */
  route: (request: IncomingMessage, response: ServerResponse) => boolean;
  connected(): boolean;
  /** Why not connected. */
  problem(): string | undefined;
  /** How many asks are being handled. */
  running(): number;
  /**
   * Stops listening, lets go what waits for its ack, then waits for what runs; how much still does at the deadline. What
   * is unfinished then is taken over by another gateway.
   */
  close(deadlineMs: number): Promise<number>;
}

const lookForLeftEveryMs = 5_000;

/** The whole gateway towards Slack, on Bolt. */
export function createSlackApp(options: SlackAppOptions): SlackApp {
  const { settings, identity, web, intake, handlers, log, now = Date.now } = options;
  const { takeOverAfterMs = 15_000 } = options;
  const { botToken, appToken, signingSecret, apiUrl } = settings;
  const socket =
    appToken === undefined ? undefined : createSlackSocket({ ...options, appToken, apiUrl });
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
    replyTo: (ask) => createReply({ web, ask, apiUrl, log, now, unheard: options.unheard }),
    openUrl: (sealed) => openResponseUrl(sealed, botToken, apiUrl),
  });
  const listening = {
    us: identity,
    intake,
    handlers,
    handling,
    seal: (url: string) => sealResponseUrl(url, botToken),
    log,
    now,
  };
  const take = createTake(listening);
  const app = new FrontApp(
    {
      receiver,
      token: botToken,
      // With both given Bolt asks Slack for neither; asking in its constructor would be an unhandled rejection when that fails.
      botId: identity.botId,
      botUserId: identity.botUserId,
      tokenVerificationEnabled: false,
      clientOptions: clientOptions({ apiUrl, log }),
      logger: slackLogger(log),
      // The default remembers a state for every conversation, in memory, for ever.
      convoStore: false,
      processBeforeResponse: false,
      ignoreSelf: true,
      attachFunctionToken: false,
    },
    {
      identity,
      log,
      beforeEventAck: async (body) => void (await take(body)),
      onAck: options.onAck,
      onRefused: options.onRefused,
    },
  );
  // The default handler rejects again, which ends as a 500 after the ack.
  app.error(async (error) => log.error("slack.listener-failed", { error }));
  addListeners(app, take, listening);

  let timer: NodeJS.Timeout | undefined;
  async function takeOver(): Promise<void> {
    try {
      for (const left of await intake.recover(takeOverAfterMs)) handling.takeOver(left);
    } catch (error) {
      log.debug("intake.not-recovered", { error: messageOf(error) });
    }
  }

  return {
    async start() {
      await intake.start();
      void takeOver();
      timer ??= setInterval(
        () => void takeOver(),
        Math.min(lookForLeftEveryMs, takeOverAfterMs),
      ).unref();
      await socket?.receiver.start();
    },
    route: (request, response) => http?.route(request, response) ?? false,
    connected: () => socket?.connected() ?? true,
    problem: () => socket?.problem(),
    running: () => handling.running(),
    async close(deadlineMs) {
      const began = performance.now();
      clearInterval(timer);
      http?.close();
      // An ack can't be sent any more once the connection closes, and Slack repeats no command.
      for (let tries = 0; app.unacked > 0 && tries < 50; tries += 1) await delay(20);
      await socket?.close();
      const left = await handling.idle(Math.max(0, deadlineMs - (performance.now() - began)));
      await intake.close();
      return left;
    },
  };
}
