import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import type { Dispatcher } from "undici";
import type { Live } from "../../config/changing-file.ts";
import { type Rounds, startRounds } from "../../redis/rounds.ts";
import type { Web } from "../web.ts";
import { type DeliveryOptions, createDeliveries } from "./deliveries.ts";
import { type HttpRefusal, createSlackHttp } from "./http.ts";
import type { Interaction } from "./interaction.ts";
import { createReply } from "./reply.ts";
import { createSlackSocket } from "./socket.ts";

interface SlackAppOptions extends Pick<
  DeliveryOptions,
  "identity" | "intake" | "handlers" | "log" | "onAck"
> {
  /** With it: Socket Mode. */
  appToken?: Live | undefined;
  /** Without an app token: HTTP. */
  signingSecret?: Live | undefined;
  apiUrl: string;
  /** For Socket Mode through a proxy. */
  dispatcher?: Dispatcher | undefined;
  web: Web;
  /** A delivery was rejected: for the security counter. */
  onRefused?: (reason: HttpRefusal | "app" | "team") => void;
  /** Slack accepted an answer nowhere. */
  onLostReply?: (interaction: Interaction) => Promise<void>;
  /** How often this one looks for what other gateways left (ms). */
  recoverEveryMs?: number;
}

/** Receives, acknowledges, and hands interactions to `handlers`. */
export function createSlackApp(options: SlackAppOptions) {
  const { intake, log, appToken, recoverEveryMs = 5_000 } = options;
  const deliveries = createDeliveries({
    ...options,
    replyTo: (interaction) => createReply({ ...options, interaction }),
  });
  const { take } = deliveries;
  const { signingSecret = "" } = options;
  const socket = appToken ? createSlackSocket({ ...options, take, appToken }) : undefined;
  const http = appToken ? undefined : createSlackHttp({ ...options, take, signingSecret });

  let rounds: Rounds | undefined;
  async function takeOver(): Promise<void> {
    for await (const left of intake.recover()) deliveries.takeOver(left);
  }

  return {
    /** Socket Mode: resolves with the first connection, or with `close`. HTTP: immediately. */
    async start(): Promise<void> {
      intake.start();
      rounds ??= startRounds("take-over", recoverEveryMs, takeOver, log);
      void rounds.now();
      await socket?.start();
    },
    /** HTTP: answers Slack's path, false for every other. */
    route: (request: IncomingMessage, response: ServerResponse) =>
      http?.route(request, response) ?? false,
    /** Why Slack isn't connected; undefined while it is, and over HTTP. */
    problem: () => socket?.problem(),
    running: () => deliveries.running(),
    /**
     * Stops listening, sends pending acks, then waits for running handlers. Resolves with how many still run at the
     * deadline; another gateway takes those over.
     */
    async close(deadlineMs: number): Promise<number> {
      const began = performance.now();
      const noMore = rounds?.close();
      http?.close();
      // Once the connection closes no ack can be sent, and Slack doesn't redeliver commands.
      for (let tries = 0; deliveries.inHand() > 0 && tries < 50; tries += 1) await delay(20);
      await socket?.close();
      const left = await deliveries.idle(Math.max(0, deadlineMs - (performance.now() - began)));
      await intake.close();
      await noMore;
      return left;
    },
  };
}
