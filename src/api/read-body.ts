import type { IncomingMessage } from "node:http";

type BodyRead = Buffer | "too-large" | "slow" | "no-room";

/**
 * Reads the whole body in time. `mayHold` is asked before each part is kept, with the size so far
 * (bytes). Throws when the sender disconnects.
 */
export async function readBody(
  request: IncomingMessage,
  how: { withinMs: number; maxBytes: number; mayHold(size: number): boolean },
): Promise<BodyRead> {
  const { promise, resolve, reject } = Promise.withResolvers<BodyRead>();
  const timer = setTimeout(resolve, how.withinMs, "slow").unref();
  const chunks: Buffer[] = [];
  let size = 0;
  const onData = (chunk: Buffer) => {
    size += chunk.length;
    if (size > how.maxBytes) return resolve("too-large");
    if (!how.mayHold(size)) return resolve("no-room");
    chunks.push(chunk);
  };
  // The sender may have disconnected before anything listened.
  if (request.destroyed && !request.complete) reject(new Error("the sender disconnected"));
  request.on("data", onData);
  request.once("end", () => resolve(Buffer.concat(chunks)));
  request.once("error", reject);
  request.once("close", () => {
    // This event follows each request, and creating an error costs a stack trace.
    if (!request.complete) reject(new Error("the sender disconnected"));
  });
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    request.off("data", onData);
  }
}
