import { context, type Message, message, news, section } from "../messages/message.ts";
import { duration, lines, type Markdown, md, name, when } from "../messages/text.ts";
import type { ChangeCommand, Command } from "../registry/define.ts";
import { type StoredRequest, type RequestRecord, stateWords } from "../requests/journal/record.ts";
import { headline, symbolOf } from "../requests/render/render-result.ts";
import { partNames, type Past, type RefusedInteraction } from "./outages.ts";
import { argumentsOf, flagName } from "../registry/arguments.ts";

/** The rest is counted. */
const maxLines = 15;
/** A section holds 3,000 characters; a line has some hundreds. */
const linesPerSection = 5;
const dayMs = 24 * 3600_000;

/** In the order of the lines of a recap. */
const outcomes = ["unknown", "failed", "did-not", "under-way", "asking", "ran"] as const;
type Outcome = (typeof outcomes)[number];

/** In the order of its first sentence; one, and several where that is said in other words. */
const inWords: readonly (readonly [is: Outcome, one: string, several?: string])[] = [
  ["ran", "ran"],
  ["failed", "failed"],
  ["did-not", "did not"],
  ["unknown", "outcome unknown", "outcomes unknown"],
  ["under-way", "still in progress"],
  ["asking", "still waiting for approval"],
];

/**
 * One message for a channel after an outage: how long it was, what ran, what did not, what is unknown. Without mentions: each
 * result mentions its requester. Undefined where there is nothing to report.
 */
export function renderRecap(
  outage: Past,
  requests: readonly StoredRequest[],
  refused: readonly RefusedInteraction[],
  commands: readonly ChangeCommand[],
): Message | undefined {
  if (requests.length + refused.length === 0) return undefined;
  const told = [
    ...requests.map((request) => ({ is: outcomeOf(request), line: lineOf(request, commands) })),
    ...linesOfRefused(refused).map((line) => ({ is: "did-not" as const, line })),
  ].toSorted((a, b) => outcomes.indexOf(a.is) - outcomes.indexOf(b.is));
  const counts = countsOf(told.map(({ is }) => is));
  const head = md`*${partNames[outage.part]} was unavailable* ${span(outage)} (${duration(outage.until - outage.since)}). ${outage.part === "slack" ? "Meanwhile" : "Affected here"}: ${counts}.`;
  const short = md`${partNames[outage.part]} was unavailable for ${duration(outage.until - outage.since)}: ${counts}`;
  const shown = told.slice(0, maxLines).map(({ line }) => line);
  const sections = [];
  for (let from = 0; from < shown.length; from += linesPerSection)
    sections.push(section(lines(...shown.slice(from, from + linesPerSection))));
  const more = told.length - shown.length;
  return message(
    news(short),
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

/** `12 ran, 2 did not, 1 outcome unknown` */
function countsOf(all: readonly Outcome[]): string {
  const counts = inWords.map(([is, one, several = one]) => {
    const count = all.filter((outcome) => outcome === is).length;
    return count === 0 ? "" : `${count} ${count === 1 ? one : several}`;
  });
  return counts.filter(Boolean).join(", ");
}

function lineOf(request: StoredRequest, commands: readonly ChangeCommand[]): Markdown {
  const { record, progress } = request;
  const id = name(record.id);
  const command = commands.find((one) => one.name === record.command);
  if (!command)
    return md`• ${record.command} of ${name(record.target.name)}: ${stateWords(request.state)} · ${id}`;
  const what = md`${command.say.verb} of ${name(record.target.name)}`;
  const symbol = symbolOf(request, command);
  switch (outcomeOf(request)) {
    case "unknown":
      return md`${symbol} ${what}: outcome unknown. Check the target, then record what happened on its message · ${id}`;
    case "asking":
      return md`${symbol} ${what} waits for approval · ${id}`;
    case "under-way":
      return md`${symbol} ${what} is still in progress${progress.why ? md`: ${progress.why}` : ""} · ${id}`;
    case "did-not":
      return md`${symbol} ${headline(request, command)}${mayBeWanted(request) ? md` Again: ${name(retype(command, record))}` : ""} · ${id}`;
    default:
      return md`${symbol} ${headline(request, command)} · ${id}`;
  }
}

/** No person decided against it. */
function mayBeWanted({ state, progress }: StoredRequest): boolean {
  return state !== "denied" && progress.decidedBy === undefined;
}

function linesOfRefused(refused: readonly RefusedInteraction[]): Markdown[] {
  return refused.map(({ words, userId, name: person = name(userId) }) => {
    const what = words === undefined ? md`A button or form` : name(words);
    return md`🚫 ${what} from ${person} was refused: nothing was done.`;
  });
}

/** In the reader's time zone; a short outage without the date. */
function span({ since, until }: Past): Markdown {
  const format = until - since < dayMs / 2 ? "{time}" : "{date_short_pretty}, {time}";
  return md`${when(since, format)}–${when(until, format)}`;
}

/** The command to type for a retry: `/vm resize payments/web-2 --cpu 4 --memory 16`. */
export function retype(
  command: Pick<Command, "name" | "args">,
  { target, input }: Pick<RequestRecord, "target" | "input">,
): string {
  const words = argumentsOf(command).flatMap(
    ({ key, target: kind, isFlag, isSwitch, isRolling }) => {
      if (isRolling) return [];
      if (kind !== undefined) {
        const owner = target.kind === "vm" && target.projectName ? `${target.projectName}/` : "";
        return [quoted(`${owner}${target.name}`)];
      }
      const value = input[key];
      if (isSwitch) return value === true ? [flagName(key)] : [];
      if (typeof value !== "string" && typeof value !== "number") return [];
      const text = quoted(String(value));
      return isFlag ? [flagName(key), text] : [text];
    },
  );
  return [`/${command.name}`, ...words].join(" ");
}

function quoted(text: string): string {
  return /^[^\s"'“”]+$/.test(text) ? text : `"${text.replaceAll('"', "")}"`;
}
