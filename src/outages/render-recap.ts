import { context, type Message, message, readable, section } from "../messages/message.ts";
import { duration, lines, type Markdown, md, name, when } from "../messages/text.ts";
import type { ChangeCommand } from "../registry/define.ts";
import type { StoredRequest } from "../requests/record.ts";
import { headline, symbolOf } from "../requests/render-result.ts";
import { partNames, type Past, type RefusedByName } from "./outage.ts";
import { retype } from "./retype.ts";

/** More than a phone shows at once is counted instead. */
const mostLines = 15;
/** A section holds 3,000 characters, and a line of ours has some hundreds. */
const linesPerSection = 5;
const dayMs = 24 * 3600_000;

/** What became of something that was asked for, in the order in which a recap tells of it. */
const outcomes = ["unknown", "failed", "did-not", "under-way", "asking", "ran"] as const;
type Outcome = (typeof outcomes)[number];

/**
 * One message for a channel after an outage: how long it was, what ran, what did not, what nobody knows. It mentions nobody:
 * whoever asked was called by the result of their own request. Undefined where there is nothing to tell.
 */
export function renderRecap(
  outage: Past,
  requests: readonly StoredRequest[],
  refused: readonly RefusedByName[],
  commands: readonly ChangeCommand[],
): Message | undefined {
  if (requests.length + refused.length === 0) return undefined;
  const told = [
    ...requests.map((request) => ({ is: outcomeOf(request), line: lineOf(request, commands) })),
    ...linesOfRefused(refused).map((line) => ({ is: "did-not" as const, line })),
  ].toSorted((a, b) => outcomes.indexOf(a.is) - outcomes.indexOf(b.is));
  const counts = countsOf(requests, refused.length);
  const head = md`*${partNames[outage.part]} was away* ${span(outage)} (${duration(outage.until - outage.since)}). ${outage.part === "slack" ? "Meanwhile" : "What it met here"}: ${counts}.`;
  const shown = told.slice(0, mostLines).map(({ line }) => line);
  const sections = [];
  for (let from = 0; from < shown.length; from += linesPerSection)
    sections.push(section(lines(...shown.slice(from, from + linesPerSection))));
  const more = told.length - shown.length;
  return message(
    readable(head),
    section(head),
    sections,
    more > 0
      ? context(
          md`… and ${more} more: each has its own message here. ${name("/gatehouse jobs")} lists what is open.`,
        )
      : undefined,
  );
}

function outcomeOf({ state, final }: Pick<StoredRequest, "state" | "final">): Outcome {
  if (state === "unknown") return "unknown";
  if (!final) return state === "draft" ? "asking" : "under-way";
  return state === "done" ? "ran" : state === "failed" ? "failed" : "did-not";
}

/** `12 ran, 2 did not, 1 outcome unknown`: what ran comes first, however the lines are sorted. */
function countsOf(requests: readonly StoredRequest[], refused: number): string {
  const count = (is: Outcome) => requests.filter((request) => outcomeOf(request) === is).length;
  const [ran, failed, didNot] = [count("ran"), count("failed"), count("did-not") + refused];
  const [unknown, underWay, asking] = [count("unknown"), count("under-way"), count("asking")];
  return [
    ran > 0 && `${ran} ran`,
    failed > 0 && `${failed} failed`,
    didNot > 0 && `${didNot} did not`,
    unknown > 0 && `${unknown} ${unknown === 1 ? "outcome" : "outcomes"} unknown`,
    underWay > 0 && `${underWay} still under way`,
    asking > 0 && `${asking} still ${asking === 1 ? "waits" : "wait"} for approval`,
  ]
    .filter((part) => part !== false)
    .join(", ");
}

function lineOf(request: StoredRequest, commands: readonly ChangeCommand[]): Markdown {
  const { record, progress } = request;
  const id = name(record.id);
  const command = commands.find((one) => one.name === record.command);
  if (!command)
    return md`• ${record.command} of ${name(record.target.name)}: ${request.state} · ${id}`;
  const what = md`${command.say.verb} of ${name(record.target.name)}`;
  const symbol = symbolOf(request);
  switch (outcomeOf(request)) {
    case "unknown":
      return md`${symbol} ${what}: outcome unknown. Please look, and press on its message what happened · ${id}`;
    case "asking":
      return md`${symbol} ${what} waits for approval · ${id}`;
    case "under-way":
      return md`${symbol} ${what} is still under way${progress.why ? md`: ${progress.why}` : ""} · ${id}`;
    case "did-not":
      return md`${symbol} ${headline(request, command)}${mayBeWanted(request) ? md` Again: ${name(retype(command, record))}` : ""} · ${id}`;
    default:
      return md`${symbol} ${headline(request, command)} · ${id}`;
  }
}

/** Nobody decided against it: it may be asked for again as it was. */
function mayBeWanted({ state, progress }: StoredRequest): boolean {
  return state !== "denied" && progress.decidedBy === undefined;
}

/** Words can be typed again; presses and forms are only counted. */
function linesOfRefused(refused: readonly RefusedByName[]): Markdown[] {
  const asker = ({ name: known, userId }: RefusedByName) =>
    known === undefined ? name(userId) : md`${known}`;
  return refused.map((ask) =>
    ask.words === undefined
      ? md`🚫 A press or a form of ${asker(ask)} was refused: nothing was done.`
      : md`🚫 ${name(ask.words)} of ${asker(ask)} was refused: nothing was done.`,
  );
}

/** In the reader's own time: on one day without the day. */
function span({ since, until }: Past): Markdown {
  const format = until - since < dayMs / 2 ? "{time}" : "{date_short_pretty}, {time}";
  return md`${when(since, format)}–${when(until, format)}`;
}
