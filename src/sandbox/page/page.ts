import { createServer } from "node:http";
import { answer, type PageParts } from "./routes.ts";

export interface Page extends AsyncDisposable {
  /** `http://127.0.0.1:<port>/`. Add `#as=amir&channel=ops` to begin as somebody, somewhere. */
  url: string;
  close(): Promise<void>;
}

/** Serves the workspace as a web page, on this machine only. Whoever can open it can act as any of its people. */
export async function startPage(options: {
  slack: PageParts["slack"];
  /** 0, the default: any free one. */
  port?: number;
}): Promise<Page> {
  const parts: PageParts = { slack: options.slack, listeners: new Set() };
  const server = createServer((request, response) => {
    answer(parts, request, response).catch((error: unknown) => {
      console.error("sandbox page:", error);
      if (!response.headersSent) response.writeHead(500);
      response.end();
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port ?? 0, "127.0.0.1", resolve);
  });
  const stop = options.slack.onChange(() => {
    for (const listener of parts.listeners) listener();
  });
  const close = async () => {
    stop();
    const closed = new Promise<void>((resolve) => void server.close(() => resolve()));
    server.closeAllConnections();
    await closed;
  };
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The page has no port");
  return { url: `http://127.0.0.1:${address.port}/`, close, [Symbol.asyncDispose]: close };
}
