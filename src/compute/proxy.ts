import { request as plainRequest } from "node:http";
import { request as tlsRequest } from "node:https";
import type { Socket } from "node:net";
import type { buildConnector } from "undici";

/** The proxy opened no connection. Nothing was sent to whoever is behind it. */
class ProxyRefusedError extends Error {
  override readonly name = "ProxyRefusedError";
  readonly code = "PROXY_REFUSED";
}

/**
 * Opens a tunnel (CONNECT) for each connection, and within it the same TLS as without a proxy: the proxy learns host and port,
 * and nothing else.
 */
export function throughProxy(
  proxy: URL,
  timeoutMs: number,
  connect: buildConnector.connector,
): buildConnector.connector {
  const login = [proxy.username, proxy.password].map((part) => decodeURIComponent(part)).join(":");
  const authorization = { "proxy-authorization": `Basic ${Buffer.from(login).toString("base64")}` };
  const send = proxy.protocol === "https:" ? tlsRequest : plainRequest;
  return (options, callback) => {
    const port = options.port === "" ? "443" : options.port;
    const target = `${options.hostname}:${port}`;
    const asked = send(new URL(proxy.origin), {
      method: "CONNECT",
      path: target,
      headers: { host: target, ...(proxy.username === "" ? {} : authorization) },
      agent: false,
      signal: AbortSignal.timeout(timeoutMs),
    });
    const fail = (error: Error) => callback(error, null);
    asked.once("error", fail);
    asked.once("connect", (answer, socket) => {
      asked.off("error", fail);
      if (answer.statusCode !== 200) {
        socket.destroy();
        return fail(new ProxyRefusedError(`the proxy answered ${answer.statusCode}`));
      }
      connect({ ...options, httpSocket: socket as Socket }, callback);
    });
    asked.end();
  };
}
