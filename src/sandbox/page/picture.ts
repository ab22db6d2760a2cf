import type { ServerResponse } from "node:http";
import type { Seen } from "../slack/seen.ts";
import { safeHeaders, sendText } from "./send.ts";

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
