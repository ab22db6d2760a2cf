import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import querystring from "node:querystring";
import { type Live, valueOf } from "../../config/changing-file.ts";
import { messageOf } from "../../errors.ts";
import type { Log } from "../../log/log.ts";
import { payloadOf, textAt } from "../json.ts";
import { parseJson } from "../web.ts";
import { ForeignDelivery, type TakeDelivery } from "./deliveries.ts";
import { readBody } from "./read-body.ts";
import { isSignedBy, readSignature } from "./signature.ts";
import { createUnverified } from "./unverified.ts";

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
