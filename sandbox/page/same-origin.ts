import type { IncomingMessage } from "node:http";

const maxBytes = 256 * 1024;

/**
 * Why a request is refused that some other web page sent through this browser; undefined when it is our own.
 * The name it asks for must be this machine (a foreign name may point here: DNS rebinding), and a browser says where
 * a request comes from: https://developer.mozilla.org/docs/Web/HTTP/Headers/Sec-Fetch-Site
 */
export function fromElsewhere(request: IncomingMessage, path: string): string | undefined {
  const { host = "", origin, "sec-fetch-site": site } = request.headers;
  const port = request.socket.localPort;
  if (host !== `127.0.0.1:${port}` && host !== `localhost:${port}`)
    return `This page is at http://127.0.0.1:${port}/`;
  if (origin !== undefined && origin !== `http://${host}`)
    return "Requests from other pages are refused.";
  // A link may lead to the page itself, but nothing else may be used from outside.
  const own = site === undefined || site === "same-origin" || site === "none";
  if (!own && path !== "/" && path !== "/cards") return "Requests from other pages are refused.";
  if (request.method === "POST" && origin === undefined)
    return "A request that does something must say its origin.";
  return undefined;
}

/** The body of a request as JSON, when it says that it is and isn't too long. */
export async function readJson(
  request: IncomingMessage,
): Promise<{ json: unknown } | { problem: string; status: number }> {
  if (request.headers["content-type"] !== "application/json")
    return { problem: "The body must be application/json.", status: 415 };
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    length += piece.length;
    if (length > maxBytes) return { problem: "The request is too long.", status: 413 };
    pieces.push(piece);
  }
  try {
    return { json: JSON.parse(Buffer.concat(pieces).toString("utf8")) };
  } catch {
    return { problem: "The body isn't JSON.", status: 400 };
  }
}
