import type { IncomingMessage, ServerResponse } from "node:http";
import querystring from "node:querystring";
import { HTTPReceiver } from "@slack/bolt";
import { within } from "../../deadline.ts";
import { type Live, valueOf } from "../../config/changing-file.ts";
import { messageOf } from "../../errors.ts";
import { type Log, slackLogger } from "../../log/log.ts";
import { ForeignDelivery } from "./guarded-app.ts";
import { CrowdedOut, createUnverified, type Unverified } from "./unverified.ts";
import { createHmac, timingSafeEqual } from "node:crypto";

/** Why an HTTP request was rejected. Nothing of it is kept or logged. */
export type HttpRefusal =
  | SignatureProblem
  | "method"
  | "content-type"
  | "body"
  | "too-large"
  | "slow"
  | "crowded";

export interface SlackHttpOptions {
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

const statusOf: Record<HttpRefusal, number> = {
  method: 405,
  header: 401,
  timestamp: 401,
  signature: 401,
  "content-type": 400,
  body: 400,
  "too-large": 413,
  slow: 408,
  crowded: 503,
};

export function createSlackHttp(options: SlackHttpOptions) {
  const { log, now = Date.now, bodyWithinMs = 5_000 } = options;
  const signingSecret = () => valueOf(options.signingSecret);
  const unverified = createUnverified(options.unverified);
  let closed = false;

  const receiver = new HTTPReceiver({
    signingSecret: signingSecret(),
    endpoints: path,
    logger: slackLogger(log),
    bodyLimit: maxBytes,
    // Bolt's own handlers answer twice, or log an error when an answer was already sent.
    processEventErrorHandler: async ({ error, response }) => {
      if (!(error instanceof ForeignDelivery)) log.error("slack.delivery-failed", { error });
      if (!response.headersSent) answer(response, error instanceof ForeignDelivery ? 403 : 500);
      return true;
    },
    unhandledRequestHandler: ({ response }) => {
      if (response.headersSent) return;
      log.error("slack.not-acked");
      answer(response, 500);
    },
  });

  // Bolt checks again, with what it was given for life
  Object.defineProperty(receiver, "signingSecret", { get: signingSecret });

  function refuse(request: IncomingMessage, response: ServerResponse, reason: HttpRefusal): void {
    options.onRefused?.(reason);
    log.warn("slack.refused", { reason });
    response.once("finish", () => request.destroy()); // drops the rest of its body
    answer(response, statusOf[reason]);
  }

  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (closed) return answer(response, 503);
    if (request.method !== "POST") return refuse(request, response, "method");
    const signed = readSignature(request.headersDistinct, now());
    if (typeof signed === "string") return refuse(request, response, signed);
    if (Number(request.headers["content-length"] ?? 0) > maxBytes)
      return refuse(request, response, "too-large");
    const body = await readBody(request, bodyWithinMs, unverified.begin(request));
    if (typeof body === "string") return refuse(request, response, body);
    if (!isSignedBy(signingSecret(), signed, body)) return refuse(request, response, "signature");
    const type = contentTypeOf(request);
    if (type === undefined) return refuse(request, response, "content-type");
    if (!holdsObject(type, body.toString())) return refuse(request, response, "body");
    // Bolt compares the whole header, so `; charset=utf-8` would make it parse a form as JSON.
    request.headers["content-type"] = type;
    receiver.requestListener(Object.assign(request, { rawBody: body }), response);
  }

  return {
    /** For Bolt's App. Never started: Gatehouse has its own server. */
    receiver,
    /** Answers requests to Slack's path; false for all others, which stay untouched. */
    route(request: IncomingMessage, response: ServerResponse): boolean {
      if (!URL.canParse(request.url ?? "", "http://gatehouse")) return false;
      if (new URL(request.url ?? "", "http://gatehouse").pathname !== path) return false;
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

function answer(response: ServerResponse, status: number): void {
  response.writeHead(status, {
    connection: "close",
    ...(status === 405 ? { allow: "POST" } : {}),
    ...(status === 503 ? { "retry-after": "1" } : {}),
    ...(status >= 500 ? {} : { "x-slack-no-retry": "1" }),
  });
  response.end();
}

function contentTypeOf(request: IncomingMessage): string | undefined {
  const type = request.headers["content-type"]?.split(";")[0]?.trim().toLowerCase();
  return type === "application/x-www-form-urlencoded" || type === "application/json"
    ? type
    : undefined;
}

/** Bolt reads fields of whatever it parsed: of `null` that would be an unhandled rejection. */
function holdsObject(type: string, body: string): boolean {
  const json = type === "application/json" ? body : querystring.parse(body)["payload"];
  return typeof json !== "string" || json.trimStart().startsWith("{");
}

/** The whole body, at most 1 MB, in time. Throws when the sender disconnects. */
async function readBody(
  request: IncomingMessage,
  withinMs: number,
  held: Unverified,
): Promise<Buffer | "too-large" | "slow" | "crowded"> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer | "too-large">();
  const chunks: Buffer[] = [];
  let size = 0;
  const onData = (chunk: Buffer) => {
    size += chunk.length;
    if (size > maxBytes) return resolve("too-large");
    chunks.push(chunk);
    held.add(chunk);
  };
  request.on("data", onData);
  request.once("end", () => resolve(Buffer.concat(chunks)));
  request.once("error", reject);
  request.once("close", () => reject(new Error("the sender disconnected")));
  try {
    return await within(withinMs, Promise.race([promise, held.crowdedOut]), () => "slow");
  } catch (error) {
    if (error instanceof CrowdedOut) return "crowded";
    throw error;
  } finally {
    held.end();
    request.off("data", onData);
  }
}

/**
 * Slack's request signing (https://docs.slack.dev/authentication/verifying-requests-from-slack/), stricter than Bolt's:
 * a future date is refused like a past one, each header must appear exactly once in Slack's format, and the raw bytes are
 * checked.
 */

type SignatureProblem = "header" | "timestamp" | "signature";

const toleranceSeconds = 300;

interface Signed {
  timestamp: string;
  signature: string;
}

function readSignature(
  headers: Readonly<Record<string, readonly string[] | undefined>>,
  nowMs: number,
): Signed | SignatureProblem {
  const [timestamp = "", ...moreTimestamps] = headers["x-slack-request-timestamp"] ?? [];
  const [signature = "", ...moreSignatures] = headers["x-slack-signature"] ?? [];
  if (moreTimestamps.length > 0 || moreSignatures.length > 0) return "header";
  if (!/^\d{1,12}$/.test(timestamp) || !/^v0=[0-9a-f]{64}$/.test(signature)) return "header";
  if (Math.abs(nowMs / 1000 - Number(timestamp)) > toleranceSeconds) return "timestamp";
  return { timestamp, signature };
}

function isSignedBy(secret: string, { timestamp, signature }: Signed, body: Buffer): boolean {
  const wanted = createHmac("sha256", secret).update(`v0:${timestamp}:`).update(body).digest("hex");
  return timingSafeEqual(Buffer.from(signature), Buffer.from(`v0=${wanted}`));
}
