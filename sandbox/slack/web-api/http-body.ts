import type { IncomingMessage } from "node:http";
import { type Fields, isFields } from "../fields.ts";

const maxBytes = 50 * 1024 * 1024;

export async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) throw new Error("request body too large");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Arguments of a call from the query and from a form, multipart or JSON body. Undefined when the body can't be read. */
export async function argumentsOf(
  request: IncomingMessage,
  body: Buffer,
  query: URLSearchParams,
): Promise<Fields | undefined> {
  const args: Fields = Object.fromEntries(query);
  const type = (request.headers["content-type"] ?? "").split(";")[0]?.trim().toLowerCase();
  if (body.length === 0) return args;
  if (type === "application/json") {
    try {
      const parsed: unknown = JSON.parse(body.toString());
      return isFields(parsed) ? { ...args, ...parsed } : undefined;
    } catch {
      return undefined;
    }
  }
  if (type === "multipart/form-data") {
    const form = await formOf(request, body);
    return form === undefined
      ? undefined
      : {
          ...args,
          ...Object.fromEntries([...form].filter(([, value]) => typeof value === "string")),
        };
  }
  return { ...args, ...Object.fromEntries(new URLSearchParams(body.toString())) };
}

/** A multipart body; undefined when it isn't one. */
export async function formOf(
  request: IncomingMessage,
  body: Buffer,
): Promise<FormData | undefined> {
  const type = request.headers["content-type"] ?? "";
  try {
    return await new Response(new Uint8Array(body), {
      headers: { "content-type": type },
    }).formData();
  } catch {
    return undefined;
  }
}
