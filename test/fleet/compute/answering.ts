import { once } from "node:events";
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from "node:http";
import { createServer as createTlsServer } from "node:https";
import { createCompute, type ComputeOptions } from "../../../src/fleet/compute/create-compute.ts";
import { type Compute, ComputeError } from "../../../src/fleet/compute/compute.ts";
import type { Log } from "../../../src/log/log.ts";

export const key = "key-5e3b1a7c9d";

/** A client that retries without waiting, closed with its scope. */
export function clientOf(
  url: string,
  options: Partial<ComputeOptions> = {},
): Compute & AsyncDisposable {
  const compute = createCompute({
    baseUrl: url,
    apiKey: key,
    timeoutMs: 60_000,
    retryDelays: { baseMs: 1, maxMs: 50 },
    ...options,
  });
  return { ...compute, [Symbol.asyncDispose]: () => compute.close() };
}

/** A log that hands on what it is told as it is: nothing is taken out. */
export function logTo(tell: (line: object) => void): Log {
  const say: Log["info"] = (event, fields) => tell({ event, ...fields });
  return { debug: say, info: say, warn: say, error: say, level: "debug" };
}

export interface Answering extends AsyncDisposable {
  url: string;
  /** Method and path of each request. */
  asked: string[];
  /** How many connections were opened. */
  connections: () => number;
}

/** A server that answers everything with `handler`; with `tls` (PEM of key and certificate) over https on localhost. */
export async function answering(
  handler: RequestListener,
  tls?: string,
  version?: "TLSv1.1",
): Promise<Answering> {
  const asked: string[] = [];
  let connections = 0;
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    asked.push(`${request.method} ${request.url}`);
    handler(request, response);
  };
  const server = tls
    ? createTlsServer(
        {
          key: tls,
          cert: tls,
          ...(version
            ? { minVersion: version, maxVersion: version, ciphers: "DEFAULT@SECLEVEL=0" }
            : {}),
        },
        listener,
      )
    : createServer(listener);
  server.on("connection", () => {
    connections += 1;
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = address !== null && typeof address === "object" ? address.port : 0;
  return {
    url: tls ? `https://localhost:${port}` : `http://127.0.0.1:${port}`,
    asked,
    connections: () => connections,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

export function says(
  value: unknown,
  status = 200,
  headers: Record<string, string> = {},
): RequestListener {
  return (_, response) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(JSON.stringify(value));
  };
}

/** The ComputeError that a call ends with; fails for any other end. */
export async function failureOf(call: Promise<unknown>): Promise<ComputeError> {
  const ended = await call.then(
    (value) => new Error(`it did not fail: ${JSON.stringify(value)}`),
    (error: unknown) => error,
  );
  if (ended instanceof ComputeError) return ended;
  throw ended;
}

export const vmRecord = { id: "vm-1", project_id: "prj-1", name: "web-1", status: "RUNNING" };
export const projectRecord = { id: "prj-1", name: "payments", type: "TEE_VM", status: "ACTIVE" };
