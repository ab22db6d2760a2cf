import type { IncomingMessage, ServerResponse } from "node:http";
import { messageOf } from "../../errors.ts";
import type { SandboxSlack } from "../slack/sandbox-slack.ts";
import { assetAt } from "./assets.ts";
import { act, parseDeed } from "./deeds.ts";
import { sendFile } from "./picture.ts";
import { fromElsewhere, readJson } from "./same-origin.ts";
import { sendJson, sendText } from "./send.ts";

export interface PageParts {
  slack: Pick<SandboxSlack, "person" | "onChange" | "workspace">;
  /** Open pages, told of every change. */
  listeners: Set<() => void>;
}

export async function answer(
  parts: PageParts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://page");
  const refusal = fromElsewhere(request, pathname);
  if (refusal !== undefined) return sendText(response, 403, refusal);
  const route = `${request.method ?? ""} ${pathname}`;
  if (route === "POST /do") return answerDeed(parts, request, response);
  if (request.method !== "GET") return sendText(response, 405, "Only GET, and POST /do.");
  const asset = await assetAt(pathname);
  if (asset) return sendText(response, 200, asset.body, asset.type);

  const person = personIn(parts, searchParams);
  if (!person) return sendJson(response, 404, { error: "There is no such person in the sandbox." });
  if (pathname === "/seen") return sendJson(response, 200, person.sees());
  if (pathname === "/events") return sendEvents(parts, response);
  const file = /^\/files\/([^/]+)$/.exec(pathname)?.[1];
  if (file !== undefined) return sendFile(person.sees(), decodeURIComponent(file), response);
  return sendText(response, 404, "Not found.");
}

/** Whoever `as` names, by id or handle; without it the first ordinary member. */
function personIn({ slack }: PageParts, query: URLSearchParams) {
  const people = [...slack.workspace.people.values()].filter(({ role }) => role !== "bot");
  const as = query.get("as") ?? "";
  const found =
    as === ""
      ? (people.find(({ role, active }) => role === "member" && active) ?? people[0])
      : people.find(({ id, name }) => id === as || name === as);
  return found && slack.person(found.id);
}

async function answerDeed(
  parts: PageParts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const body = await readJson(request);
  if ("problem" in body) return sendJson(response, body.status, { problem: body.problem });
  const deed = parseDeed(body.json);
  if (typeof deed === "string") return sendJson(response, 400, { problem: deed });
  const person = personIn(parts, new URLSearchParams(deed.as === undefined ? {} : { as: deed.as }));
  if (!person) return sendJson(response, 404, { problem: "There is no such person here." });
  try {
    sendJson(response, 200, await act(person, deed));
  } catch (error) {
    // What a person can't do at all: a button that has gone, a channel they can't see.
    sendJson(response, 409, { problem: messageOf(error) });
  }
  return undefined;
}

function sendEvents({ listeners }: PageParts, response: ServerResponse): void {
  response.writeHead(200, {
    "content-type": "text/event-stream",
    "cache-control": "no-store",
    "x-accel-buffering": "no",
  });
  const tell = () => response.write("event: changed\ndata: \n\n");
  listeners.add(tell);
  response.on("close", () => listeners.delete(tell));
  // Whatever happened between looking and listening, or while the connection was lost.
  tell();
}
