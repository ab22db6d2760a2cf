import { once } from "node:events";
import type { Server } from "node:http";

/** Listens on 127.0.0.1 only; closing cuts open connections, the hanging ones too. */
export async function listen(
  server: Server,
  port: number,
): Promise<{ url: string; close(): Promise<void> }> {
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the sandbox has no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
