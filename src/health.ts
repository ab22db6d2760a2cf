import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { messageOf } from "./errors.ts";
import type { Log } from "./log.ts";
import type { Telemetry } from "./telemetry.ts";

export interface Health {
  /** The port it really listens on. */
  readonly port: number;
  /** Stops listening, lets running answers end for up to a second, then cuts them. */
  close(): Promise<void>;
}

export interface HealthOptions {
  port: number;
  /** Default: all interfaces, because probes come from outside the container. */
  host?: string;
  log: Log;
  telemetry: Telemetry;
  /** Why this process should be restarted, or undefined. */
  alive(): string | undefined;
  /** Why this process shouldn't get work now, or undefined. Slower than 2 s counts as a no. */
  ready(): Promise<string | undefined>;
  /** Further pages on the same port: true when the request was theirs, and then they answer it. */
  routes?: (request: IncomingMessage, response: ServerResponse) => boolean;
}

const readyWithinMs = 2_000;

/**
 * The process's own web server: `/healthz`, `/readyz`, `/metrics` and what `routes` adds.
 * Throws when the port is taken.
 */
export async function startHealth(options: HealthOptions): Promise<Health> {
  const { log, routes } = options;
  const server = createServer(
    { requestTimeout: 15_000, headersTimeout: 10_000 },
    (request, response) => {
      if (routes?.(request, response)) return;
      answer(request, response, options).catch((error: unknown) => {
        log.error("health.failed", { error });
        if (response.headersSent) response.destroy();
        else reply(response, 500, { problem: "something went wrong here; the log says what" });
      });
    },
  );
  server.listen(options.port, options.host);
  await once(server, "listening"); // rejects with the error, e.g. EADDRINUSE
  server.on("error", (error) => log.error("health.error", { error }));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : options.port;

  async function close(): Promise<void> {
    const closed = once(server, "close");
    server.close();
    server.closeIdleConnections();
    const late = setTimeout(() => server.closeAllConnections(), 1_000);
    await closed;
    clearTimeout(late);
  }
  return { port, close };
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
    const { type, text } = await options.telemetry.render();
    return send(response, 200, type, text);
  }
  const problem = path === "/healthz" ? options.alive() : await readiness(() => options.ready());
  return problem === undefined
    ? reply(response, 200, { ok: true })
    : reply(response, 503, { ok: false, problem });
}

/** The reason for a no; a check that fails or hangs is a no as well. */
async function readiness(ready: HealthOptions["ready"]): Promise<string | undefined> {
  const { promise: late, resolve } = Promise.withResolvers<string>();
  const timer = setTimeout(
    () => resolve(`the check took longer than ${readyWithinMs / 1000} s`),
    readyWithinMs,
  );
  try {
    return await Promise.race([ready(), late]);
  } catch (error) {
    return messageOf(error);
  } finally {
    clearTimeout(timer);
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
