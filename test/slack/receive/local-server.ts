import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";

export interface LocalServer extends AsyncDisposable {
  /** Without a slash at the end. */
  url: string;
  port: number;
  /** Cuts every connection. */
  hangUp(): void;
}

/** A server on 127.0.0.1 and a free port, for one test. */
export async function listenLocally(answer: RequestListener): Promise<LocalServer> {
  const server = createServer(answer);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    port: address.port,
    hangUp: () => server.closeAllConnections(),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}
