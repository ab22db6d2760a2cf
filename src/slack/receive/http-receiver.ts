import type { IncomingMessage, ServerResponse } from "node:http";
import { type App, HTTPModuleFunctions, HTTPReceiver } from "@slack/bolt";
import { type Live, currentValue } from "../../config/changing-file.ts";
import { deadlineMs } from "../../deadline.ts";
import type { Log } from "../../log/log.ts";
import { slackLogger } from "../../log/slack-logger.ts";
import type { ProcessEvent } from "./process-event.ts";
import { RefusedDelivery } from "./refuse-foreign.ts";
import { clockHint, whyNotSigned } from "./slack-signature.ts";

/** Why a request was rejected before any listener saw it. Nothing of it is stored or logged. */
export type HttpRefusal = "method" | "signature" | "timestamp" | "body" | "too-large";

interface HttpReceiverOptions {
  /** It may be replaced while the process runs. */
  signingSecret: Live;
  processEvent: ProcessEvent;
  log: Log;
  onRefused?: ((reason: HttpRefusal) => void) | undefined;
}

const path = "/slack/events";
/**
 * The largest body (bytes). The largest that Slack sends of our own messages and forms is a fifth
 * of it, as a form.
 */
const bodyLimit = 512 * 1024;

/** Bolt answers 404 when nobody has acknowledged a delivery by then (ms): its own default. */
const unhandledAfterMs = 3_001;

const reasons = new Map<number, HttpRefusal>([
  [400, "body"],
  [401, "signature"],
  [405, "method"],
  [413, "too-large"],
]);

/**
 * Bolt's HTTPReceiver on a web server of ours. A new one is created for each new signing secret.
 */
export function createHttpReceiver(options: HttpReceiverOptions) {
  const { log, processEvent, onRefused } = options;
  let receiver: HTTPReceiver | undefined;
  let secret = "";
  let isClosed = false;
  /** Responses to deliveries that a listener refused, which is counted there. */
  const refusedLater = new WeakSet<ServerResponse>();

  function receiverNow(): HTTPReceiver {
    const current = currentValue(options.signingSecret);
    if (receiver && current === secret) return receiver;
    secret = current;
    receiver = new HTTPReceiver({
      signingSecret: current,
      endpoints: path,
      bodyLimit,
      unhandledRequestTimeoutMillis: deadlineMs(unhandledAfterMs),
      logger: slackLogger(log),
      customPropertiesExtractor: ({ headers }) => ({
        signedAtSeconds: Number(headers["x-slack-request-timestamp"]),
      }),
      processEventErrorHandler: async ({ error, response }) => {
        if (error instanceof RefusedDelivery) refusedLater.add(response);
        answer(response, statusOf(error));
        return true;
      },
    });
    // The receiver calls nothing else of an App.
    receiver.init({ processEvent } as Pick<App, "processEvent"> as App);
    return receiver;
  }

  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (isClosed) return answer(response, 503);
    if (request.method !== "POST") return answer(response, 405);
    const problem = await bodyProblem(request);
    if (problem !== undefined) return answer(response, problem);
    // Bolt uses the body that was read above.
    receiverNow().requestListener(request, response);
  }

  /** Bolt says only that it refused, and not whether because of the secret or of the date. */
  function reasonOf(request: IncomingMessage): "signature" | "timestamp" {
    const body: unknown = Reflect.get(request, "rawBody");
    if (!Buffer.isBuffer(body)) return "signature";
    return whyNotSigned(request.headers, body, { secret, nowMs: Date.now() });
  }

  return {
    /** Answers requests to Slack's path. Returns false for all others, which stay untouched. */
    route(request: IncomingMessage, response: ServerResponse): boolean {
      const url = URL.parse(request.url ?? "", "http://gatehouse");
      if (url?.pathname !== path) return false;
      response.once("finish", () => {
        const known = reasons.get(response.statusCode);
        if (known === undefined || refusedLater.has(response)) return;
        const reason = known === "signature" ? reasonOf(request) : known;
        onRefused?.(reason);
        log.warn("slack.refused", {
          reason,
          ...(reason === "timestamp" && { hint: clockHint }),
        });
      });
      // The sender disconnected during the request.
      receive(request, response).catch(() => response.destroy());
      return true;
    },
    /** Answers 503 from now on, so that Slack redelivers events to another process. */
    close(): void {
      isClosed = true;
    },
  };
}

const statusOf = (error: unknown): number => {
  if (!(error instanceof RefusedDelivery)) return 500;
  return error.reason === "timestamp" ? 401 : 403;
};

/**
 * Bodies up to this size are parsed here, before their signature is checked (bytes), because a body
 * that Bolt can't handle is small. What Slack sends is larger, so a large unsigned body costs no
 * parsing.
 */
const smallBody = 1_000;

/**
 * Reads the body. Resolves with the status of a refusal, or undefined. It works around Bolt 5.1.0,
 * which throws where nobody can catch it when a body is JSON but not an object, and doesn't accept
 * a form whose content type names a charset.
 */
async function bodyProblem(request: IncomingMessage): Promise<number | undefined> {
  const { headers } = request;
  headers["content-type"] = headers["content-type"]?.split(";")[0]?.trim().toLowerCase();
  try {
    const read = await HTTPModuleFunctions.bufferIncomingMessage(request, bodyLimit);
    if (read.rawBody.length > smallBody) return undefined;
    const body: unknown = HTTPModuleFunctions.parseHTTPRequestBody(read);
    return typeof body === "object" && body !== null && !Array.isArray(body) ? undefined : 400;
  } catch (error) {
    if (error instanceof SyntaxError) return 400;
    if (HTTPModuleFunctions.isRawBodyError(error) && error.statusCode === 413) return 413;
    throw error;
  }
}

function answer(response: ServerResponse, status: number): void {
  response.writeHead(status, {
    connection: "close",
    ...(status === 405 && { allow: "POST" }),
    ...(status === 503 && { "retry-after": "1" }),
    ...(status < 500 && { "x-slack-no-retry": "1" }),
  });
  response.end();
}
