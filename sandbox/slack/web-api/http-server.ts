import type { IncomingMessage, ServerResponse } from "node:http";
import { fieldsOf } from "../fields.ts";
import { respondTo } from "../state/response-urls.ts";
import { answerCall, type ApiParts, inWeather, send } from "./answer-call.ts";
import { argumentsOf, formOf, readBody } from "./http-body.ts";

/** Everything the sandbox answers over HTTP. */
export async function answerRequest(
  parts: ApiParts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://sandbox");
  const [, first = "", ...rest] = pathname.split("/");
  const body = await readBody(request);
  if (first === "api")
    return answerCall(parts, rest.join("/"), request, response, body, searchParams);
  if (first === "actions" && request.method === "POST")
    return answerResponseUrl(parts, request, response, body, rest[1] ?? "");
  if (first === "upload" && request.method === "POST")
    return answerUpload(parts, request, response, body, rest[1] ?? "");
  if (first === "files-pri" && request.method === "GET")
    return sendFile(parts, request, response, rest[0] ?? "", searchParams);
  send(response, { status: 404, body: "This is the sandbox Slack: its Web API is under /api/." });
}

async function answerResponseUrl(
  parts: ApiParts,
  request: IncomingMessage,
  response: ServerResponse,
  body: Buffer,
  key: string,
): Promise<void> {
  const { workspace } = parts;
  const args = await argumentsOf(request, body, new URLSearchParams());
  const payload =
    typeof args?.["payload"] === "string" ? fieldsOf(JSON.parse(args["payload"])) : args;
  const channel = workspace.responseUrls.get(key)?.channelId ?? "";
  await inWeather(parts, "response_url", { ...payload, channel }, response, () => {
    const { status, body: text } = respondTo(workspace, key, payload);
    return { status, body: text };
  });
}

async function answerUpload(
  parts: ApiParts,
  request: IncomingMessage,
  response: ServerResponse,
  body: Buffer,
  key: string,
): Promise<void> {
  const { workspace } = parts;
  const file = [...workspace.files.values()].find(({ uploadKey }) => uploadKey === key);
  const isForm = request.headers["content-type"]?.startsWith("multipart/form-data") ?? false;
  const part = isForm
    ? [...((await formOf(request, body))?.values() ?? [])].find((value) => value instanceof Blob)
    : undefined;
  const bytes = part ? Buffer.from(await part.arrayBuffer()) : body;
  await inWeather(parts, "upload", { file: file?.id, bytes: bytes.length }, response, () => {
    if (!file || file.completedAt !== undefined) return { status: 404, body: "not_found" };
    if (bytes.length !== file.size)
      return { status: 400, body: `expected ${file.size} bytes, got ${bytes.length}` };
    file.bytes = bytes;
    return { status: 200, body: `OK - ${bytes.length}` };
  });
}

/** The app shows its token, a person's browser the key in the address. */
function sendFile(
  { workspace }: ApiParts,
  request: IncomingMessage,
  response: ServerResponse,
  name: string,
  query: URLSearchParams,
): void {
  const file = workspace.files.get(name.split("-").at(-1) ?? "");
  const { app } = workspace;
  const byToken =
    request.headers.authorization === `Bearer ${app.botToken}` && app.scopes.includes("files:read");
  if (!file?.bytes || (!byToken && query.get("key") !== file.viewKey))
    return send(response, { status: 404, body: "file_not_found" });
  response.writeHead(200, {
    "content-type": file.mimetype,
    "content-length": file.bytes.length,
    "content-disposition": `inline; filename*=UTF-8''${encodeURIComponent(file.name)}`,
    "x-content-type-options": "nosniff",
    "access-control-allow-origin": "*",
  });
  response.end(file.bytes);
}
