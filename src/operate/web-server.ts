import { once } from "node:events";
import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";
import type { Socket } from "node:net";
import { ConfigError } from "../config/config-error.ts";
import { UserError, codeOf } from "../errors.ts";
import type { Log } from "../log/log.ts";
import { deadlineMs } from "../deadline.ts";

export interface PortOptions {
  /** The variable that sets the port. */
  variable?: string;
  port: number;
  /** The default is all interfaces. */
  host?: string | undefined;
  log: Log;
}

/** The most connections at a time. Node.js drops any beyond it. */
const mostConnections = 1_024;
/** With more connections, each new one ends another that waits for its next request. */
const crowded = 768;
/**
 * How long a connection may be silent in both directions (ms). This is longer than a call waits for
 * the next state.
 */
const silentMs = 70_000;
/**
 * How long one request may take to arrive completely, and its headers (ms), and how long a
 * connection waits for the next one. A connection that sends nothing is cut after the time for
 * headers, which begins with a request's first byte. A balancer keeps its connections for 60 s; it
 * must be the one that closes them, or a call that it sends meanwhile is lost.
 */
const arrival = {
  requestTimeout: 10_000,
  headersTimeout: 5_000,
  keepAliveTimeout: 75_000,
  connectionsCheckingInterval: 1_000,
};

/**
 * Why a port can't be opened. A port that another process uses may become free, so trying again may
 * help.
 */
const troubles: Readonly<Record<string, string>> = {
  EADDRINUSE: "another process has it",
  EACCES: "this user can't bind ports below 1024",
  EADDRNOTAVAIL: "this machine doesn't have that address",
};

/**
 * The address to bind for `::`: none, by which Node.js opens the port for IPv6 and IPv4, or for IPv4
 * alone on a machine without IPv6.
 */
export const bindAddress = (host: string | undefined) => (host === "::" ? undefined : host);

/**
 * Where many connections are open, closes the one that has waited the longest for its next request
 * when a new one comes, so that they keep nobody out. `closeIdleConnections` would also close those
 * that have just been opened.
 */
function makeRoom(server: Server): void {
  let open = 0;
  const idle = new Set<Socket>();
  server.on("connection", (socket) => {
    open += 1;
    socket.once("close", () => {
      open -= 1;
      idle.delete(socket);
    });
    const [longest] = open > crowded ? idle : [];
    longest?.destroy();
  });
  server.on("request", ({ socket }, response) => {
    idle.delete(socket);
    response.once("close", () => void (socket.destroyed || idle.add(socket)));
  });
}

/**
 * A web server of this process. `listener` returns false when there is nothing at the address.
 * Limits on connections and on how long a request may take to arrive bound what strangers can
 * occupy; a proxy in front bounds how many there are. Throws when the port is in use.
 */
export async function startWebServer(
  { variable = "PORT", port, host, log }: PortOptions,
  listener: (request: IncomingMessage, response: ServerResponse) => unknown,
) {
  const options = {
    ...arrival,
    requestTimeout: deadlineMs(arrival.requestTimeout),
    headersTimeout: deadlineMs(arrival.headersTimeout),
    keepAliveTimeout: deadlineMs(arrival.keepAliveTimeout),
  };
  const server = createServer(options, (request, response) => {
    if (listener(request, response) === false)
      response.writeHead(404, { connection: "close" }).end();
  });
  server.maxConnections = mostConnections;
  server.setTimeout(silentMs);
  makeRoom(server);
  server.listen({ port, host: bindAddress(host), backlog: mostConnections });
  await once(server, "listening").catch((error: unknown) => {
    const trouble = troubles[codeOf(error)];
    if (trouble === undefined) throw error;
    const hostVariable = variable === "OPS_PORT" ? "OPS_HOST" : "HOST";
    // A restart wouldn't help with either of these.
    if (codeOf(error) === "EADDRNOTAVAIL")
      throw new ConfigError([`${hostVariable}: ${trouble}, ${host}: name one that it has`]);
    if (codeOf(error) === "EACCES")
      throw new ConfigError([`${variable}: ${trouble}: set it to a higher one`]);
    throw new UserError(
      `${variable}: the port can't be opened: ${trouble}`,
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
  return {
    /** The port on which it actually listens. */ port: isPort ? address.port : port,
    close,
  };
}
