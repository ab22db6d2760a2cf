import type { ServerResponse } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import type { Answer } from "./answers.ts";
import type { SandboxCall } from "./journal.ts";
import type { Effect } from "./weather.ts";

const zone = /("\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?)Z(?=")/g;

const encoders: Readonly<Record<string, (plain: Buffer) => Buffer>> = {
  gzip: (plain) => gzipSync(plain),
  deflate: (plain) => deflateSync(plain),
  br: (plain) => brotliCompressSync(plain),
};

/** Sends an answer as well or badly as the weather lets it. Resolves with what became of it. */
export async function send(
  response: ServerResponse,
  answer: Answer,
  effect: Effect,
): Promise<SandboxCall["answer"]> {
  const { encoding = "identity", withoutZone } = effect;
  const text = withoutZone ? answer.body.replaceAll(zone, "$1") : answer.body;
  const body = (encoders[encoding] ?? Buffer.from)(Buffer.from(text));
  const headers: Record<string, string> = { ...answer.headers };
  if (effect.encoding !== undefined) headers["content-encoding"] = effect.encoding;
  if (answer.contentType !== undefined) headers["content-type"] = answer.contentType;
  if (effect.retryAfter !== undefined) headers["retry-after"] = String(effect.retryAfter);
  if (effect.cut !== undefined && body.length > 1)
    return cut(response, answer.status, headers, body, effect.cut);
  if (effect.hugeBytes !== undefined)
    return pad(response, answer.status, headers, body, effect.hugeBytes);
  if (effect.dripMs !== undefined)
    return drip(response, answer.status, headers, body, effect.dripMs);
  if (answer.status !== 204) headers["content-length"] = String(body.length);
  response.writeHead(answer.status, headers);
  // As text it leaves in one write with the head
  response.end(effect.encoding === undefined ? text : body);
  return answer.status;
}

async function cut(
  response: ServerResponse,
  status: number,
  headers: Record<string, string>,
  body: Buffer,
  how: NonNullable<Effect["cut"]>,
): Promise<SandboxCall["answer"]> {
  const half = body.subarray(0, Math.floor(body.length / 2));
  if (how === "json") {
    response.writeHead(status, { ...headers, "content-length": String(half.length) });
    response.end(half);
    return "cut";
  }
  response.writeHead(
    status,
    how === "length" ? { ...headers, "content-length": String(body.length) } : headers,
  );
  await new Promise<void>((resolve) => response.write(half, () => resolve()));
  response.destroy();
  return "cut";
}

/** JSON followed by spaces is JSON: only its size is wrong. */
async function pad(
  response: ServerResponse,
  status: number,
  headers: Record<string, string>,
  body: Buffer,
  bytes: number,
): Promise<SandboxCall["answer"]> {
  response.writeHead(status, headers);
  response.write(body);
  const spaces = Buffer.alloc(64 * 1024, " ");
  for (let left = bytes; left > 0 && !response.destroyed; left -= spaces.length) {
    const part = spaces.subarray(0, Math.min(left, spaces.length));
    if (!response.write(part)) await drained(response);
  }
  if (response.destroyed) return "cut";
  response.end();
  return status;
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off("drain", done);
      response.off("close", done);
      resolve();
    };
    response.on("drain", done);
    response.on("close", done);
  });
}

async function drip(
  response: ServerResponse,
  status: number,
  headers: Record<string, string>,
  body: Buffer,
  everyMs: number,
): Promise<SandboxCall["answer"]> {
  response.writeHead(status, { ...headers, "content-length": String(body.length) });
  for (const byte of body) {
    if (response.destroyed) return "cut";
    response.write(Buffer.of(byte));
    await wait(everyMs);
  }
  response.end();
  return status;
}
