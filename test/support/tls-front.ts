import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { createServer } from "node:tls";
import type { MintedCertificate } from "./mint-authority.ts";

export interface TlsFront extends AsyncDisposable {
  port: number;
  /** `https://localhost:<port>`. */
  url: string;
  /** How many handshakes came to an end. */
  connections(): number;
}

/** TLS in front of a plain server of this machine. */
export async function startTlsFront(
  { cert, key }: MintedCertificate,
  plainUrl: string,
): Promise<TlsFront> {
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer({ key, cert }, (socket) => {
    connections += 1;
    const inner = connect(Number(new URL(plainUrl).port), "127.0.0.1");
    for (const [one, other] of [
      [socket, inner],
      [inner, socket],
    ] as const) {
      sockets.add(one);
      one.on("error", () => other.destroy());
      one.once("close", () => sockets.delete(one));
    }
    socket.pipe(inner).pipe(socket);
  });
  server.on("tlsClientError", () => undefined);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    port,
    url: `https://localhost:${port}`,
    connections: () => connections,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
