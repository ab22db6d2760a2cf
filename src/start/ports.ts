import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { within } from "../deadline.ts";
import { codeOf, messageOf, UserError } from "../errors.ts";
import type { Log } from "../log/log.ts";

interface PortOptions {
  /** The variable that sets the port. */
  variable?: string;
  port: number;
  /** Default: all interfaces. */
  host?: string | undefined;
  log: Log;
}

/** Connections that have no request in hand. */
const mostIdle = 256;

/** Why a port can't be had. Another process may give it back: that is worth another try. */
const troubles: Readonly<Record<string, string>> = {
  EADDRINUSE: "another process has it",
  EACCES: "this user can't bind ports below 1024",
  EADDRNOTAVAIL: "this machine doesn't have that address",
};

/**
 * A web server of this process. Of connections without a request the oldest is cut when there are too many, so that whoever
 * opens them without end shuts nobody out. Throws when the port is taken.
 */
async function startWebServer(
  { variable = "PORT", port, host, log }: PortOptions,
  listener: (request: IncomingMessage, response: ServerResponse) => void,
) {
  const idle = new Set<Socket>();
  const server = createServer({ requestTimeout: 15_000, headersTimeout: 10_000 }, listener);
  const rest = (socket: Socket) => {
    if (socket.destroyed) return;
    idle.add(socket);
    const [oldest] = idle;
    if (idle.size > mostIdle) oldest?.destroy();
  };
  server.on("connection", (socket) => {
    socket.once("close", () => idle.delete(socket));
    rest(socket);
  });
  server.on("request", ({ socket }, response) => {
    idle.delete(socket);
    response.once("finish", () => rest(socket));
  });
  server.listen(port, host);
  await once(server, "listening").catch((error: unknown) => {
    const found = troubles[codeOf(error)];
    if (found === undefined) throw error;
    throw new UserError(
      `${variable}: the port can't be opened: ${found}`,
      `Set ${variable} to another one, or end the other process`,
    );
  });
  server.on("error", (error) => log.error("web.error", { error }));
  const address = server.address();

  /** Stops listening, lets running answers end for up to a second, then cuts them. */
  async function close(): Promise<void> {
    const closed = once(server, "close");
    server.close();
    server.closeIdleConnections();
    const late = setTimeout(() => server.closeAllConnections(), 1_000);
    await closed;
    clearTimeout(late);
  }
  const isPort = typeof address === "object" && address !== null;
  return { /** The port it really listens on. */ port: isPort ? address.port : port, close };
}

/**
 * The only port that is open to the world, over HTTP: it knows Slack's path, and nothing of this process. `route` answers
 * false for what Slack never asks for.
 */
export function startSlackDoor({
  route,
  ...options
}: PortOptions & { route(request: IncomingMessage, response: ServerResponse): boolean }) {
  return startWebServer(options, (request, response) => {
    if (route(request, response)) return;
    response.writeHead(404, { connection: "close" });
    response.end();
  });
}

export interface HealthOptions extends PortOptions {
  /** The page of `/metrics`, and its content type. */
  figures(): Promise<{ type: string; text: string }>;
  /** Why this process should be restarted, or undefined. */
  alive(): string | undefined;
  /** Why this process shouldn't get work now, or undefined. Slower than 2 s counts as a no. */
  ready(): Promise<string | undefined>;
}

const readyWithinMs = 2_000;

/** The probes and figures of this process: `/healthz`, `/readyz`, `/metrics`. Throws when the port is taken. */
export function startHealth(options: HealthOptions) {
  const late = () => `the check took longer than ${readyWithinMs / 1000} s`;
  // A check that fails or hangs is a no as well
  const ready = shared(() =>
    within(readyWithinMs, Promise.try(options.ready), late).catch(messageOf),
  );
  const figures = shared(options.figures);

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? "/").split("?", 1)[0];
    if (path !== "/healthz" && path !== "/readyz" && path !== "/metrics")
      return reply(response, 404, { problem: "no such page" });
    if (request.method !== "GET" && request.method !== "HEAD") {
      response.setHeader("allow", "GET, HEAD");
      return reply(response, 405, { problem: "only GET" });
    }
    if (path === "/metrics") {
      const { type, text } = await figures();
      return send(response, 200, type, text);
    }
    const problem = path === "/healthz" ? options.alive() : await ready();
    return problem === undefined
      ? reply(response, 200, { ok: true })
      : reply(response, 503, { ok: false, problem });
  }

  return startWebServer(options, (request, response) => {
    answer(request, response).catch((error: unknown) => {
      options.log.error("health.failed", { error });
      if (response.headersSent) response.destroy();
      else reply(response, 500, { problem: "internal error; see the log" });
    });
  });
}

/** Whoever asks while an answer is on its way gets that one: many probes or scrapes at once cost one. */
function shared<T>(ask: () => Promise<T>): () => Promise<T> {
  let asking: Promise<T> | undefined;
  return () => (asking ??= ask().finally(() => (asking = undefined)));
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
