import { once } from "node:events";
import { type IncomingMessage, type ServerResponse, createServer } from "node:http";
import type { Socket } from "node:net";
import { ConfigError } from "../config/config.ts";
import { UserError, codeOf } from "../errors.ts";
import type { Log } from "../log/log.ts";

export interface PortOptions {
  /** The variable that sets the port. */
  variable?: string;
  port: number;
  /** Default: all interfaces. */
  host?: string | undefined;
  log: Log;
}

/** Connections that have no request in hand. */
const mostIdle = 256;
/** A new connection isn't idle yet: of a burst all come before the first has said anything (ms). */
const idleGraceMs = 500;
/** All together; beyond it new ones are dropped where each has a whole request in hand. */
const mostConnections = 1_024;
/** Without a byte in either direction: longer than a call waits for the next state. */
const silentMs = 70_000;

/** Why a port can't be had. Another process may give it back: that is worth another try. */
const troubles: Readonly<Record<string, string>> = {
  EADDRINUSE: "another process has it",
  EACCES: "this user can't bind ports below 1024",
  EADDRNOTAVAIL: "this machine doesn't have that address",
};

/**
 * A web server of this process. `listener` answers false where nothing is at the address. Of connections without a request the
 * oldest is cut when there are too many for longer than a burst takes, and where there is no room at all the oldest whose request
 * hasn't arrived whole: so whoever opens them without end shuts nobody out. Throws when the port is taken.
 */
export async function startWebServer(
  { variable = "PORT", port, host, log }: PortOptions,
  listener: (request: IncomingMessage, response: ServerResponse) => unknown,
) {
  /** Since when, the longest first. */
  const idle = new Map<Socket, number>();
  /** All that are open, with the request in hand; those that were heard of last come last. */
  const open = new Map<Socket, IncomingMessage | undefined>();
  const how = { requestTimeout: 15_000, headersTimeout: 5_000, connectionsCheckingInterval: 1_000 };
  const server = createServer(how, (request, response) => {
    if (listener(request, response) === false)
      response.writeHead(404, { connection: "close" }).end();
  });
  // One more comes in, so that another is cut for it
  server.maxConnections = mostConnections + 1;
  server.setTimeout(silentMs);
  const hold = (socket: Socket, request?: IncomingMessage) => {
    open.delete(socket);
    open.set(socket, request);
  };
  const cut = (socket: Socket) => {
    idle.delete(socket);
    open.delete(socket);
    socket.destroy();
  };
  let looking: NodeJS.Timeout | undefined;
  const cutIdle = () => {
    looking = undefined;
    const longest = performance.now() - idleGraceMs;
    for (const [socket, since] of idle) {
      if (idle.size <= mostIdle || since > longest) break;
      cut(socket);
    }
    lookLater();
  };
  const lookLater = () => {
    if (idle.size <= mostIdle) return;
    // What arrived meanwhile is read first, however busy the process was
    looking ??= setTimeout(() => setImmediate(cutIdle), idleGraceMs / 2).unref();
  };
  const makeRoom = () => {
    if (open.size <= mostConnections) return;
    const unfinished = open.entries().find(([, request]) => request?.complete !== true);
    if (unfinished) cut(unfinished[0]);
  };
  const rest = (socket: Socket) => {
    if (socket.destroyed) return;
    idle.set(socket, performance.now());
    hold(socket);
    lookLater();
  };
  server.on("connection", (socket) => {
    socket.once("close", () => {
      idle.delete(socket);
      open.delete(socket);
    });
    rest(socket);
    makeRoom();
  });
  server.on("request", (request, response) => {
    const { socket } = request;
    idle.delete(socket);
    hold(socket, request);
    response.once("finish", () => rest(socket));
  });
  server.listen({ port, host, backlog: mostConnections });
  await once(server, "listening").catch((error: unknown) => {
    const found = troubles[codeOf(error)];
    if (found === undefined) throw error;
    const hostVariable = variable === "OPS_PORT" ? "OPS_HOST" : "HOST";
    // A restart changes neither of these
    if (codeOf(error) === "EADDRNOTAVAIL")
      throw new ConfigError([`${hostVariable}: ${found}, ${host}: name one that it has`]);
    if (codeOf(error) === "EACCES")
      throw new ConfigError([`${variable}: ${found}: set it to a higher one`]);
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
