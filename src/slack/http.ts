import type { IncomingMessage, ServerResponse } from "node:http";
import querystring from "node:querystring";
import { HTTPReceiver } from "@slack/bolt";
import { messageOf } from "../errors.ts";
import { type Log, slackLogger } from "../log.ts";
import { ForeignDelivery } from "./front.ts";
import { isSignedBy, readSignature, type SignatureProblem } from "./signature.ts";

/** Why something that came over HTTP was not let in. Nothing of it is kept or logged. */
export type HttpRefusal =
  | SignatureProblem
  | "method"
  | "content-type"
  | "body"
  | "too-large"
  | "slow";

export interface SlackHttp {
  /** For Bolt's App. Never started: the server is ours. */
  readonly receiver: HTTPReceiver;
  /** Answers what is for Slack's path; false for everything else, which is left untouched. */
  route(request: IncomingMessage, response: ServerResponse): boolean;
  /** From now on deliveries are answered 503, so that Slack sends events again, to another process. */
  close(): void;
}

export interface SlackHttpOptions {
  signingSecret: string;
  log: Log;
  onRefused?: (reason: HttpRefusal) => void;
  path?: string;
  now?: () => number;
  /** How long a body may take to arrive. */
  bodyWithinMs?: number;
}

const mostBytes = 1024 * 1024;

const statusOf: Record<HttpRefusal, number> = {
  method: 405,
  header: 401,
  timestamp: 401,
  signature: 401,
  "content-type": 400,
  body: 400,
  "too-large": 413,
  slow: 408,
};

export function createSlackHttp(options: SlackHttpOptions): SlackHttp {
  const {
    signingSecret,
    log,
    path = "/slack/events",
    now = Date.now,
    bodyWithinMs = 5_000,
  } = options;
  let closed = false;

  const receiver = new HTTPReceiver({
    signingSecret,
    endpoints: path,
    logger: slackLogger(log),
    bodyLimit: mostBytes,
    // Bolt's own handlers answer a second time after an answer was sent, or log that as an error.
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

  function refuse(request: IncomingMessage, response: ServerResponse, reason: HttpRefusal): void {
    options.onRefused?.(reason);
    log.warn("slack.refused", { reason });
    response.once("finish", () => request.destroy()); // whatever it still has to say
    answer(response, statusOf[reason]);
  }

  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (closed) return answer(response, 503);
    if (request.method !== "POST") return refuse(request, response, "method");
    const signed = readSignature(request.headersDistinct, now());
    if (typeof signed === "string") return refuse(request, response, signed);
    const body = await readBody(request, bodyWithinMs);
    if (typeof body === "string") return refuse(request, response, body);
    if (!isSignedBy(signingSecret, signed, body)) return refuse(request, response, "signature");
    const type = contentTypeOf(request);
    if (type === undefined) return refuse(request, response, "content-type");
    if (!holdsObject(type, body.toString())) return refuse(request, response, "body");
    // Bolt compares the whole header, so `; charset=utf-8` would make it parse a form as JSON.
    request.headers["content-type"] = type;
    receiver.requestListener(Object.assign(request, { rawBody: body }), response);
  }

  return {
    receiver,
    route(request, response) {
      if (!URL.canParse(request.url ?? "", "http://gatehouse")) return false;
      if (new URL(request.url ?? "", "http://gatehouse").pathname !== path) return false;
      take(request, response).catch((error: unknown) => {
        log.warn("slack.delivery-broken", { error: messageOf(error) });
        if (!response.headersSent) answer(response, 400);
      });
      return true;
    },
    close() {
      closed = true;
    },
  };
}

function answer(response: ServerResponse, status: number): void {
  const again = status >= 500 ? {} : { "x-slack-no-retry": "1" };
  response.writeHead(status, {
    connection: "close",
    ...(status === 405 ? { allow: "POST" } : {}),
    ...again,
  });
  response.end();
}

function contentTypeOf(request: IncomingMessage): string | undefined {
  const type = request.headers["content-type"]?.split(";")[0]?.trim().toLowerCase();
  return type === "application/x-www-form-urlencoded" || type === "application/json"
    ? type
    : undefined;
}

/** Bolt looks into what it parsed without looking what it is: of `null` that would be an unhandled rejection. */
function holdsObject(type: string, body: string): boolean {
  const json = type === "application/json" ? body : querystring.parse(body)["payload"];
  return typeof json !== "string" || json.trimStart().startsWith("{");
}

/** The whole body, unless it is longer than 1 MB or takes longer than it may. Throws when the sender goes away. */
async function readBody(
  request: IncomingMessage,
  withinMs: number,
): Promise<Buffer | "too-large" | "slow"> {
  if (Number(request.headers["content-length"] ?? 0) > mostBytes) return "too-large";
  const { promise, resolve, reject } = Promise.withResolvers<Buffer | "too-large" | "slow">();
  const timer = setTimeout(() => resolve("slow"), withinMs);
  const chunks: Buffer[] = [];
  let size = 0;
  const onData = (chunk: Buffer) => {
    size += chunk.length;
    if (size > mostBytes) resolve("too-large");
    else chunks.push(chunk);
  };
  request.on("data", onData);
  request.once("end", () => resolve(Buffer.concat(chunks)));
  request.once("error", reject);
  request.once("close", () => reject(new Error("the sender went away")));
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    request.off("data", onData);
  }
}
