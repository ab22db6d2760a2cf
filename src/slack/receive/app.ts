import type { Dispatcher } from "undici";
import type { Interaction, Handlers } from "./interaction.ts";
import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import type { Live } from "../../config/changing-file.ts";
import { messageOf } from "../../errors.ts";
import type { Log } from "../../log/log.ts";
import { createDeliveries } from "./deliveries.ts";
import { createSlackHttp, type HttpRefusal } from "./http.ts";
import type { BotIdentity } from "../people/identity.ts";
import type { Intake } from "./intake.ts";
import { createReply } from "./respond.ts";
import { openResponseUrl, sealResponseUrl } from "../deliver/response-url.ts";
import { createSlackSocket } from "./socket.ts";
import type { Web } from "../web.ts";

interface SlackAppOptions {
  botToken: string;
  /** With it: Socket Mode. */
  appToken?: Live | undefined;
  /** Without an app token: HTTP. */
  signingSecret?: Live | undefined;
  apiUrl: string;
  /** For Socket Mode through a proxy. */
  dispatcher?: Dispatcher | undefined;
  identity: BotIdentity;
  web: Web;
  intake: Intake;
  handlers: Handlers;
  log: Log;
  /** The time from receiving a delivery to sending its ack. */
  onAck?: (kind: string, ms: number) => void;
  /** A delivery was rejected: for the security counter. */
  onRefused?: (reason: HttpRefusal | "app" | "team") => void;
  /** Slack accepted an answer nowhere. */
  onLostReply?: (interaction: Interaction) => Promise<void>;
  /** How often this one looks for what other gateways left (ms). */
  recoverEveryMs?: number;
}

/** Receives, acknowledges, and hands interactions to `handlers`. */
export function createSlackApp(options: SlackAppOptions) {
  const { intake, log, botToken, appToken, apiUrl, recoverEveryMs = 5_000 } = options;
  const deliveries = createDeliveries({
    ...options,
    replyTo: (interaction) => createReply({ ...options, interaction }),
    sealUrl: (url) => sealResponseUrl(url, botToken),
    openUrl: (sealed) => openResponseUrl(sealed, botToken, apiUrl),
  });
  const { take } = deliveries;
  const { signingSecret = "" } = options;
  const socket = appToken ? createSlackSocket({ ...options, take, appToken }) : undefined;
  const http = appToken ? undefined : createSlackHttp({ ...options, take, signingSecret });

  let timer: NodeJS.Timeout | undefined;
  async function takeOver(): Promise<void> {
    try {
      for await (const left of intake.recover()) deliveries.takeOver(left);
    } catch (error) {
      log.debug("intake.not-recovered", { error: messageOf(error) });
    }
  }

  return {
    /** Socket Mode: resolves with the first connection, or with `close`. HTTP: immediately. */
    async start(): Promise<void> {
      intake.start();
      void takeOver();
      timer ??= setInterval(() => void takeOver(), recoverEveryMs).unref();
      await socket?.start();
    },
    /** HTTP: answers Slack's path, false for every other. */
    route: (request: IncomingMessage, response: ServerResponse) =>
      http?.route(request, response) ?? false,
    connected: () => socket?.connected() ?? true,
    problem: () => socket?.problem(),
    running: () => deliveries.running(),
    /**
     * Stops listening, sends pending acks, then waits for running handlers. Resolves with how many still run at the
     * deadline; another gateway takes those over.
     */
    async close(deadlineMs: number): Promise<number> {
      const began = performance.now();
      clearInterval(timer);
      http?.close();
      // Once the connection closes no ack can be sent, and Slack doesn't redeliver commands.
      for (let tries = 0; deliveries.inHand() > 0 && tries < 50; tries += 1) await delay(20);
      await socket?.close();
      const left = await deliveries.idle(Math.max(0, deadlineMs - (performance.now() - began)));
      await intake.close();
      return left;
    },
  };
}
