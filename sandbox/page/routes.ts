import type { IncomingMessage, ServerResponse } from "node:http";
import { messageOf } from "../message-of.ts";
import type { SandboxSlack } from "../slack/sandbox-slack.ts";
import { wordsIn } from "../slack/describe-seen.ts";
import type { SeenBlock } from "../slack/seen.ts";
import { assetAt } from "./assets.ts";
import type { Gallery, GalleryCard, MakeCards } from "./gallery.ts";
import type { Around } from "./around.ts";
import { act, parseInteraction } from "./interactions.ts";
import { fromElsewhere, readJson } from "./same-origin.ts";
import { type PageWeather, parseTurn } from "./weather.ts";
import { sendFile, sendJson, sendText } from "./send.ts";

export interface PageParts {
  slack: Pick<SandboxSlack, "person" | "onChange" | "workspace">;
  weather: PageWeather | undefined;
  cards: MakeCards | undefined;
  around: () => Around;
  /** Open pages, told of every change in the workspace, and to look at what is around it. */
  listeners: Set<(what: "workspace" | "around") => void>;
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
  if (route === "POST /do") return answerInteraction(parts, request, response);
  if (route === "POST /weather") return answerTurn(parts, request, response);
  if (request.method !== "GET")
    return sendText(response, 405, "Only GET, POST /do, and POST /weather.");
  const asset = await assetAt(pathname === "/cards" ? "/cards.html" : pathname);
  if (asset) return sendText(response, 200, asset.body, asset.type);

  if (pathname === "/events") return sendEvents(parts, response);
  const person = personIn(parts, searchParams);
  if (!person) return sendJson(response, 404, { error: "There is no such person in the sandbox." });
  if (pathname === "/cards.json") {
    if (!parts.cards) return sendText(response, 404, "There are no cards here.");
    const names = searchParams.get("names") === "long" ? "long" : "usual";
    const cards = (await parts.cards(names)).map((card) => ({ ...card, words: wordsOf(card) }));
    return sendJson(response, 200, { seen: person.sees(), cards } satisfies Gallery);
  }
  if (pathname === "/seen") return sendJson(response, 200, person.sees());
  const file = /^\/files\/([^/]+)$/.exec(pathname)?.[1];
  if (file !== undefined) return sendFile(person.sees(), decodeURIComponent(file), response);
  return sendText(response, 404, "Not found.");
}

const wordsOf = ({ shown }: GalleryCard) =>
  shown.blocks.length === 0 && "text" in shown
    ? shown.text
    : wordsIn(shown.blocks as readonly SeenBlock[]).join("\n");

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

async function answerInteraction(
  parts: PageParts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const body = await readJson(request);
  if ("problem" in body) return sendJson(response, body.status, { problem: body.problem });
  const interaction = parseInteraction(body.json);
  if (typeof interaction === "string") return sendJson(response, 400, { problem: interaction });
  const person = personIn(
    parts,
    new URLSearchParams(interaction.as === undefined ? {} : { as: interaction.as }),
  );
  if (!person) return sendJson(response, 404, { problem: "There is no such person here." });
  try {
    sendJson(response, 200, await act(person, interaction));
  } catch (error) {
    // What a person can't do at all: a button that has gone, a channel they can't see.
    sendJson(response, 409, { problem: messageOf(error) });
  }
  return undefined;
}

async function answerTurn(
  { weather }: PageParts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const body = await readJson(request);
  if ("problem" in body) return sendJson(response, body.status, { problem: body.problem });
  const turn = parseTurn(body.json);
  if (typeof turn === "string") return sendJson(response, 400, { problem: turn });
  if (!weather) return sendJson(response, 404, { problem: "There is no weather here." });
  try {
    await weather.turn(turn);
    sendJson(response, 200, {});
  } catch (error) {
    sendJson(response, 409, { problem: messageOf(error) });
  }
  return undefined;
}

function sendEvents({ listeners, around }: PageParts, response: ServerResponse): void {
  response.writeHead(200, {
    "content-type": "text/event-stream",
    "cache-control": "no-store",
    "x-accel-buffering": "no",
  });
  let told = "";
  const tell = (what: "workspace" | "around") => {
    const now = JSON.stringify(around());
    if (now !== told) response.write(`event: around\ndata: ${now}\n\n`);
    told = now;
    if (what === "workspace") response.write("event: changed\ndata: \n\n");
  };
  listeners.add(tell);
  response.on("close", () => listeners.delete(tell));
  // Whatever happened between looking and listening, or while the connection was lost.
  tell("workspace");
}
