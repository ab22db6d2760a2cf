import type { Dispatcher } from "undici";
import { type Interaction, createReply } from "./interaction.ts";
import type { IncomingMessage, ServerResponse, IncomingHttpHeaders } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { type Live, valueOf } from "../../config/changing-file.ts";
import { messageOf } from "../../errors.ts";
import type { Log } from "../../log/log.ts";
import { type Rounds, startRounds } from "../../redis/due-list.ts";
import {
  createDeliveries,
  type DeliveryOptions,
  ForeignDelivery,
  type TakeDelivery,
} from "./deliveries.ts";
import { createSlackSocket } from "./socket.ts";
import { parseJson, payloadOf, textAt, type Web } from "../web.ts";
import { createHmac, timingSafeEqual } from "node:crypto";
import querystring from "node:querystring";

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

/** Why an HTTP request was rejected. Nothing of it is kept or logged. */
export type HttpRefusal = keyof typeof statusOf;

export interface SlackHttpOptions {
  take: TakeDelivery;
  /** It may be replaced while the process runs. */
  signingSecret: Live;
  log: Log;
  onRefused?: (reason: HttpRefusal) => void;
  now?: () => number;
  /** How long a body may take to arrive. */
  bodyWithinMs?: number;
  /** What requests may take together before their signature is checked. */
  unverified?: { most?: number; mostBytes?: number };
}

const path = "/slack/events";
const maxBytes = 1024 * 1024;

const statusOf = {
  method: 405,
  header: 401,
  timestamp: 401,
  signature: 401,
  "content-type": 400,
  body: 400,
  "too-large": 413,
  slow: 408,
  crowded: 503,
} as const;

/**
 * Takes what Slack sends over HTTP, in place of Bolt's own receiver: that one checks a weaker signature and parses the body
 * once more, which together cost as much as the rest of an ack.
 */
export function createSlackHttp(options: SlackHttpOptions) {
  const { log, now = Date.now, bodyWithinMs = 5_000 } = options;
  const unverified = createUnverified(options.unverified);
  let closed = false;

  function refuse(request: IncomingMessage, response: ServerResponse, reason: HttpRefusal): void {
    options.onRefused?.(reason);
    log.warn("slack.refused", { reason });
    response.once("finish", () => request.destroy()); // drops the rest of its body
    answer(response, statusOf[reason]);
  }

  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (closed) return answer(response, 503);
    if (request.method !== "POST") return refuse(request, response, "method");
    const signed = readSignature(request.headers, now());
    if (typeof signed === "string") return refuse(request, response, signed);
    if (Number(request.headers["content-length"] ?? 0) > maxBytes)
      return refuse(request, response, "too-large");
    const body = await readBody(request, { withinMs: bodyWithinMs, maxBytes, unverified });
    if (typeof body === "string") return refuse(request, response, body);
    if (!isSignedBy(valueOf(options.signingSecret), signed, body))
      return refuse(request, response, "signature");
    const delivery = parseDelivery(request.headers, body.toString());
    if (typeof delivery === "string") return refuse(request, response, delivery);
    await deliver(delivery, response);
  }

  async function deliver(body: Record<string, unknown>, response: ServerResponse): Promise<void> {
    if (textAt(body, "ssl_check") === "1") return acknowledge(response, undefined);
    if (textAt(body, "type") === "url_verification")
      return acknowledge(response, { challenge: textAt(body, "challenge") });
    try {
      await options.take({ body, ack: async (said) => acknowledge(response, said) });
    } catch (error) {
      if (!(error instanceof ForeignDelivery)) log.error("slack.delivery-failed", { error });
      if (!response.headersSent) answer(response, error instanceof ForeignDelivery ? 403 : 500);
    }
  }

  return {
    /** Answers requests to Slack's path; false for all others, which stay untouched. */
    route(request: IncomingMessage, response: ServerResponse): boolean {
      const url = URL.parse(request.url ?? "", "http://gatehouse");
      if (url?.pathname !== path) return false;
      take(request, response).catch((error: unknown) => {
        log.warn("slack.delivery-broken", { error: messageOf(error) });
        if (!response.headersSent) answer(response, 400);
      });
      return true;
    },
    /** Answers 503 from now on, so that Slack redelivers events to another process. */
    close(): void {
      closed = true;
    },
  };
}

/** Slack takes an empty body or JSON. */
function acknowledge(response: ServerResponse, said: object | undefined): void {
  response.writeHead(200, said && { "content-type": "application/json" });
  response.end(said && JSON.stringify(said));
}

function answer(response: ServerResponse, status: number): void {
  response.writeHead(status, {
    connection: "close",
    ...(status === 405 ? { allow: "POST" } : {}),
    ...(status === 503 ? { "retry-after": "1" } : {}),
    ...(status >= 500 ? {} : { "x-slack-no-retry": "1" }),
  });
  response.end();
}

/** JSON, or a form that is the delivery or has it as JSON in `payload`; or why it is neither. */
function parseDelivery(
  headers: IncomingHttpHeaders,
  body: string,
): Record<string, unknown> | "content-type" | "body" {
  const type = headers["content-type"]?.split(";")[0]?.trim().toLowerCase();
  const isForm = type === "application/x-www-form-urlencoded";
  if (!isForm && type !== "application/json") return "content-type";
  const form = isForm ? querystring.parse(body) : { payload: body };
  const { payload } = form;
  if (typeof payload !== "string") return form;
  const parsed = payload.trimStart().startsWith("{") ? parseJson(payload) : undefined;
  return parsed === undefined ? "body" : { ...payloadOf(parsed) };
}

type BodyRead = Buffer | "too-large" | "slow" | "crowded";

/** The whole body, in time. Throws when the sender disconnects. */
export async function readBody(
  request: IncomingMessage,
  how: { withinMs: number; maxBytes: number; unverified: ReturnType<typeof createUnverified> },
): Promise<BodyRead> {
  const { promise, resolve, reject } = Promise.withResolvers<BodyRead>();
  const { unverified } = how;
  unverified.begin(request, () => resolve("crowded"));
  const timer = setTimeout(resolve, how.withinMs, "slow").unref();
  const chunks: Buffer[] = [];
  let size = 0;
  const onData = (chunk: Buffer) => {
    size += chunk.length;
    if (size > how.maxBytes) return resolve("too-large");
    chunks.push(chunk);
    unverified.add(request, chunk);
  };
  request.on("data", onData);
  request.once("end", () => resolve(Buffer.concat(chunks)));
  request.once("error", reject);
  request.once("close", () => {
    // It comes after each request, and an error costs a stack
    if (!request.complete) reject(new Error("the sender disconnected"));
  });
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    unverified.end(request);
    request.off("data", onData);
  }
}

/**
 * Slack's request signing (https://docs.slack.dev/authentication/verifying-requests-from-slack/), stricter than Bolt's:
 * a future date is refused like a past one, each header must appear exactly once in Slack's format, and the raw bytes are
 * checked.
 */

const toleranceSeconds = 300;

interface Signed {
  timestamp: string;
  signature: string;
}

/** Of a header that comes twice Node joins the values, and then neither form fits. */
export function readSignature(
  headers: IncomingHttpHeaders,
  nowMs: number,
): Signed | "header" | "timestamp" {
  const timestamp = String(headers["x-slack-request-timestamp"]);
  const signature = String(headers["x-slack-signature"]);
  if (!/^\d{1,12}$/.test(timestamp) || !/^v0=[0-9a-f]{64}$/.test(signature)) return "header";
  if (Math.abs(nowMs / 1000 - Number(timestamp)) > toleranceSeconds) return "timestamp";
  return { timestamp, signature };
}

export function isSignedBy(
  secret: string,
  { timestamp, signature }: Signed,
  body: Buffer,
): boolean {
  const wanted = createHmac("sha256", secret).update(`v0:${timestamp}:`).update(body).digest("hex");
  return timingSafeEqual(Buffer.from(signature), Buffer.from(`v0=${wanted}`));
}

/**
 * What all requests without a checked signature, whose bodies are still on their way, may take together. Anybody can send such requests, so when there are too
 * many the ones that look least like Slack's make room: of too many the oldest (Slack sends a body at once), of too much the
 * largest (Slack's are small). So a genuine delivery passes a flood as long as it arrives faster than the flood turns over.
 */
export function createUnverified({ most = 1_024, mostBytes = 8 * 1024 * 1024 } = {}) {
  const held = new Map<IncomingMessage, { bytes: number; leave(): void }>();
  let bytes = 0;

  /** It was checked, or it is gone. */
  function end(request: IncomingMessage): void {
    bytes -= held.get(request)?.bytes ?? 0;
    held.delete(request);
  }

  function makeRoom(): void {
    const [oldest] = held.values();
    if (held.size > most) oldest?.leave();
    while (bytes > mostBytes) {
      const largest = [...held.values()].reduce((a, b) => (b.bytes > a.bytes ? b : a));
      largest.leave();
    }
  }

  return {
    /** `crowdedOut`: it must make room; maybe at once. */
    begin(request: IncomingMessage, crowdedOut: () => void): void {
      const leave = () => {
        end(request);
        crowdedOut();
      };
      held.set(request, { bytes: 0, leave });
      makeRoom();
    },
    /** Bytes that have arrived. */
    add(request: IncomingMessage, { length }: Buffer): void {
      const one = held.get(request);
      if (!one) return;
      one.bytes += length;
      bytes += length;
      makeRoom();
    },
    end,
  };
}
