import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { Socket } from "node:net";
import type { Log } from "../log/log.ts";

interface WebServerOptions {
  port: number;
  /** Default: all interfaces. */
  host?: string | undefined;
  log: Log;
  /** Connections that have no request in hand. */
  mostIdle: number;
}

/**
 * A web server of this process. Of connections without a request the oldest is cut when there are too many, so that whoever
 * opens them without end shuts nobody out. Throws when the port is taken.
 */
export async function startWebServer(options: WebServerOptions, listener: RequestListener) {
  const { log } = options;
  const idle = new Set<Socket>();
  const server = createServer({ requestTimeout: 15_000, headersTimeout: 10_000 }, listener);
  const rest = (socket: Socket) => {
    if (socket.destroyed) return;
    idle.add(socket);
    const [oldest] = idle;
    if (idle.size > options.mostIdle) oldest?.destroy();
  };
  server.on("connection", (socket) => {
    socket.once("close", () => idle.delete(socket));
    rest(socket);
  });
  server.on("request", ({ socket }, response) => {
    idle.delete(socket);
    response.once("finish", () => rest(socket));
  });
  server.listen(options.port, options.host);
  await once(server, "listening"); // rejects with the error, e.g. EADDRINUSE
  server.on("error", (error) => log.error("web.error", { error }));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : options.port;

  /** Stops listening, lets running answers end for up to a second, then cuts them. */
  async function close(): Promise<void> {
    const closed = once(server, "close");
    server.close();
    server.closeIdleConnections();
    const late = setTimeout(() => server.closeAllConnections(), 1_000);
    await closed;
    clearTimeout(late);
  }
  return { /** The port it really listens on. */ port, close };
}
