import type { ServerResponse } from "node:http";
import type { Seen } from "../slack/seen.ts";

/**
 * Only what this server serves is loaded and run. Pictures may come from elsewhere: an `image_url` is somebody's
 * address.
 */
const policy = [
  "default-src 'self'",
  "img-src 'self' https:",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join("; ");

const safeHeaders = {
  "content-security-policy": policy,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
};

export function sendText(
  response: ServerResponse,
  status: number,
  body: string,
  type = "text/plain; charset=utf-8",
): void {
  response.writeHead(status, { ...safeHeaders, "content-type": type }).end(body);
}

export function sendJson(response: ServerResponse, status: number, value: unknown): void {
  sendText(response, status, JSON.stringify(value), "application/json");
}

const pictures = new Set(["image/png", "image/jpeg", "image/gif"]);

/** Hands through a file that this person sees: pictures to look at, anything else only to be saved. */
export async function sendFile(seen: Seen, id: string, response: ServerResponse): Promise<void> {
  const file = Object.hasOwn(seen.files, id) ? seen.files[id] : undefined;
  if (!file) return sendText(response, 404, "There is no such file, or it isn't for you.");
  const answer = await fetch(file.url);
  if (!answer.ok) return sendText(response, 404, "The file isn't there.");
  const bytes = Buffer.from(await answer.arrayBuffer());
  const shown = pictures.has(file.mimetype);
  response.writeHead(200, {
    ...safeHeaders,
    "content-type": shown ? file.mimetype : "application/octet-stream",
    "content-length": bytes.length,
    "content-disposition": `${shown ? "inline" : "attachment"}; filename*=UTF-8''${encodeURIComponent(file.name)}`,
  });
  response.end(bytes);
}
