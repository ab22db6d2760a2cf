import type { IncomingMessage } from "node:http";
import { createUnverified } from "./unverified.ts";

type BodyRead = Buffer | "too-large" | "slow" | "crowded";

/** The whole body, in time. Throws when the sender disconnects. */
export async function readBody(
  request: IncomingMessage,
  how: { withinMs: number; maxBytes: number; unverified: ReturnType<typeof createUnverified> },
): Promise<BodyRead> {
  const { promise, resolve, reject } = Promise.withResolvers<BodyRead>();
  const { unverified } = how;
  unverified.begin(request, () => resolve("crowded"));
  const timer = setTimeout(resolve, how.withinMs, "slow").unref();
  const chunks: Buffer[] = [];
  let size = 0;
  const onData = (chunk: Buffer) => {
    size += chunk.length;
    if (size > how.maxBytes) return resolve("too-large");
    chunks.push(chunk);
    unverified.add(request, chunk);
  };
  request.on("data", onData);
  request.once("end", () => resolve(Buffer.concat(chunks)));
  request.once("error", reject);
  request.once("close", () => {
    // It comes after each request, and an error costs a stack
    if (!request.complete) reject(new Error("the sender disconnected"));
  });
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    unverified.end(request);
    request.off("data", onData);
  }
}
