import type { IncomingMessage, ServerResponse } from "node:http";
import { within } from "../deadline.ts";
import { messageOf } from "../errors.ts";
import type { Log } from "../log/log.ts";
import { startWebServer } from "./web-server.ts";

export interface HealthOptions {
  port: number;
  /** Default: all interfaces. */
  host?: string | undefined;
  log: Log;
  /** The page of `/metrics`, and its content type. */
  figures(): Promise<{ type: string; text: string }>;
  /** Why this process should be restarted, or undefined. */
  alive(): string | undefined;
  /** Why this process shouldn't get work now, or undefined. Slower than 2 s counts as a no. */
  ready(): Promise<string | undefined>;
}

const readyWithinMs = 2_000;

const mostIdle = 256;

/** The probes and figures of this process: `/healthz`, `/readyz`, `/metrics`. Throws when the port is taken. */
export function startHealth(options: HealthOptions) {
  const { log } = options;
  const asked = {
    ...options,
    ready: shared(() => readiness(() => options.ready())),
    figures: shared(() => options.figures()),
  };
  return startWebServer({ ...options, mostIdle }, (request, response) => {
    answer(request, response, asked).catch((error: unknown) => {
      log.error("health.failed", { error });
      if (response.headersSent) response.destroy();
      else reply(response, 500, { problem: "internal error; see the log" });
    });
  });
}

/** Whoever asks while an answer is on its way gets that one: many probes or scrapes at once cost one. */
function shared<T>(ask: () => Promise<T>): () => Promise<T> {
  let asking: Promise<T> | undefined;
  return () =>
    (asking ??= ask().finally(() => {
      asking = undefined;
    }));
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  options: HealthOptions,
): Promise<void> {
  const path = (request.url ?? "/").split("?", 1)[0];
  if (path !== "/healthz" && path !== "/readyz" && path !== "/metrics")
    return reply(response, 404, { problem: "no such page" });
  if (request.method !== "GET" && request.method !== "HEAD") {
    response.setHeader("allow", "GET, HEAD");
    return reply(response, 405, { problem: "only GET" });
  }
  if (path === "/metrics") {
    const { type, text } = await options.figures();
    return send(response, 200, type, text);
  }
  const problem = path === "/healthz" ? options.alive() : await options.ready();
  return problem === undefined
    ? reply(response, 200, { ok: true })
    : reply(response, 503, { ok: false, problem });
}

/** The reason for a no; a check that fails or hangs is a no as well. */
async function readiness(ready: HealthOptions["ready"]): Promise<string | undefined> {
  try {
    const late = () => `the check took longer than ${readyWithinMs / 1000} s`;
    return await within(readyWithinMs, ready(), late);
  } catch (error) {
    return messageOf(error);
  }
}

function reply(response: ServerResponse, status: number, body: object): void {
  send(response, status, "application/json; charset=utf-8", `${JSON.stringify(body)}\n`);
}

function send(response: ServerResponse, status: number, type: string, text: string): void {
  response.writeHead(status, {
    "content-type": type,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "content-length": Buffer.byteLength(text),
  });
  response.end(text);
}
