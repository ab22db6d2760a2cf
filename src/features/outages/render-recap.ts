import { type RefusedInteraction, partNames } from "../../monitor/dependency-probe.ts";
import { type Message } from "../../messages/blocks.ts";
import { lineList, card } from "../../messages/card.ts";
import {
  counted,
  dotted,
  duration,
  type Markdown,
  md,
  name,
  timeNear,
} from "../../messages/markdown.ts";
import { type ChangeCommand, type Command, argumentsOf, flagName } from "../../registry/define.ts";
import { type RequestRecord } from "../../core/request/record.ts";
import { signs } from "../../core/cards/render-result.ts";
import { tellAct } from "../../core/cards/tell-act.ts";
import type { EventsSince } from "../../core/events/read-events.ts";
import { paragraph } from "../../messages/parts.ts";
import type { Past } from "./outages.ts";
import type { StoredRequest } from "../../core/request/stored-request.ts";
import { deciderOf } from "../../core/request/stage.ts";

/** Further lines are only counted. */
const maxLines = 15;

/**
 * Outcomes in the order of a recap's first sentence: singular, plural, and the place among its
 * lines.
 */
const outcomes = {
  ran: { singular: "request ran", plural: "requests ran", place: 5 },
  failed: { singular: "failed", plural: "failed", place: 1 },
  "may-run": { singular: "may have been taken", plural: "may have been taken", place: 1 },
  "did-not": { singular: "did not", plural: "did not", place: 2 },
  unknown: { singular: "outcome unknown", plural: "outcomes unknown", place: 0 },
  "under-way": { singular: "still in progress", plural: "still in progress", place: 3 },
  asking: {
    singular: "still waiting for approval",
    plural: "still waiting for approval",
    place: 4,
  },
};
type Outcome = keyof typeof outcomes;

/**
 * Renders one message for a channel after an outage: how long it was, what ran, what did not, what
 * is unknown. It mentions nobody, because each result mentions its requester. Undefined when there
 * is nothing to report.
 */
export function renderRecap(
  outage: Past,
  requests: readonly StoredRequest[],
  refused: readonly RefusedInteraction[],
  commands: readonly ChangeCommand[],
  meanwhile: Meanwhile = { events: [], unread: [] },
): Message | undefined {
  if (requests.length + refused.length === 0) return undefined;
  const entries = [
    ...requests.map((request) => ({
      outcome: outcomeOf(request),
      isFirst: isToKnowFirst(request, commands),
      isRefused: false,
      line: lineOf(request, commands),
    })),
    ...refused.map((interaction) => ({
      outcome: interaction.mayRun ? ("may-run" as const) : ("did-not" as const),
      isFirst: false,
      isRefused: true,
      line: lineOfRefused(interaction),
    })),
  ].toSorted((a, b) => placeOf(a) - placeOf(b));
  const { part, since, until } = outage;
  const lasted = duration(until - since);
  const counts = countsOf(entries);
  const title = md`*${partNames[part]} was unavailable* ${span(outage)} (${lasted}). ${part === "slack" ? "Meanwhile" : "Affected here"}: ${counts}.`;
  const push = md`${partNames[part]} was unavailable for ${lasted}: ${counts}`;
  const shown = entries.slice(0, maxLines).map(({ line }) => line);
  const rest = (left: number) =>
    md`… and ${left} more: ${kindsOf(entries.slice(-left))}. ${name("/gatehouse jobs")} lists what is open.`;
  const rows = lineList(shown, { beyond: entries.length - shown.length, rest });
  return card({ title, push, body: [rows, ...meanwhileParts(meanwhile, since)] });
}

/** What happened during the outage beside requests. */
export type Meanwhile = Pick<EventsSince, "events" | "unread">;

function meanwhileParts({ events, unread }: Meanwhile, since: number) {
  const missing =
    unread.length > 0 && md`⚠️ *Could not be read:* ${[...new Set(unread)].join(", ")}.`;
  const shown = events.slice(0, maxLines).map(({ at, text }) => md`${timeNear(at, since)} ${text}`);
  const all = [...shown, ...(missing ? [missing] : [])];
  return all.length === 0
    ? []
    : [paragraph(md`*Also happened:*`), lineList(all, { beyond: events.length - shown.length })];
}

/**
 * True for what ran without approval or destroyed something: such a line must never be among those
 * only counted.
 */
function isToKnowFirst({ record, final }: StoredRequest, commands: readonly ChangeCommand[]) {
  const command = commands.find(({ name: called }) => called === record.command);
  return final && (record.breakGlass === true || command?.class === "destroy");
}

const placeOf = ({ outcome, isFirst }: { outcome: Outcome; isFirst: boolean }) =>
  isFirst ? outcomes.unknown.place : outcomes[outcome].place;

function outcomeOf({ state, final }: Pick<StoredRequest, "state" | "final">): Outcome {
  if (state === "unknown") return "unknown";
  if (!final) return state === "draft" ? "asking" : "under-way";
  return state === "done" ? "ran" : state === "failed" ? "failed" : "did-not";
}

/** The counts, like `12 requests ran, 2 did not, 1 outcome unknown`. */
function countsOf(entries: readonly { outcome: Outcome }[]): string {
  const counts = Object.entries(outcomes).flatMap(([outcome, { singular, plural }]) => {
    const count = entries.filter(({ outcome: kind }) => kind === outcome).length;
    return count === 0 ? [] : counted(count, singular, plural);
  });
  return counts.join(", ");
}

/** Counts the lines that aren't shown by their kind. Only a request has a message of its own. */
function kindsOf(entries: readonly { outcome: Outcome; isRefused: boolean }[]): string {
  const mayRun = entries.filter(({ outcome }) => outcome === "may-run").length;
  const refused = entries.filter(({ isRefused }) => isRefused).length - mayRun;
  const requests = entries.length - refused - mayRun;
  const kinds = [
    requests > 0 &&
      counted(
        requests,
        "request with its own message here",
        "requests with their own messages here",
      ),
    mayRun > 0 && `${counted(mayRun, "command")} that may have been taken`,
    refused > 0 && counted(refused, "refused command"),
  ];
  return kinds.filter((kind) => kind !== false).join(", ");
}

function lineOf(request: StoredRequest, commands: readonly ChangeCommand[]): Markdown {
  const { record, state, stage } = request;
  const command = commands.find((candidate) => candidate.name === record.command);
  const outcome = outcomeOf(request);
  // Offer a retry only if no person decided against the request.
  const isWanted =
    command && outcome === "did-not" && state !== "denied" && deciderOf(stage) === undefined;
  const next =
    outcome === "unknown"
      ? md` Check it, then record on its message what happened.`
      : isWanted && md` Again: ${name(retype(command, record))}`;
  return dotted(md`${tellAct(request, command)}${next || ""}`, name(record.id));
}

function lineOfRefused({ words, userId, name: person, mayRun }: RefusedInteraction): Markdown {
  const interactionWords = words === undefined ? md`A button or form` : name(words);
  if (mayRun)
    return md`${signs.unknown} ${interactionWords} from ${person ?? name(userId)} may have been taken: where no card appeared, nothing was done.`;
  return md`${signs.failed} ${interactionWords} from ${person ?? name(userId)} was refused: nothing was done.`;
}

/** The time of the outage in the reader's time zone, without the date if it was short. */
function span({ since, until }: Past): Markdown {
  return md`${timeNear(since, until)}–${timeNear(until, since)}`;
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
