import { recordedText } from "../../audit/render.ts";
import { type AuditEntry, actIdIn } from "../../audit/trail.ts";
import { Markdown, listed, md, name } from "../../messages/markdown.ts";
import { type ChangeCommand, calledName, nounOf } from "../../registry/define.ts";
import { undoneBy } from "../request/origin.ts";
import { type RequestRecord, isReviewed } from "../request/record.ts";
import { deciderOf, isAlready, stateWords, whyOf } from "../request/stage.ts";
import type { StoredRequest } from "../request/stored-request.ts";
import { detailOf } from "./asking.ts";
import { endWords, headline, isUnconfirmed, symbolOf } from "./render-result.ts";
import { lowerFirst } from "../../text/letter-case.ts";
import { approvalsIn } from "../permit/votes.ts";

/**
 * A request in one sentence: who did what, or asked for it and how that ended, why, and who approved
 * or signed it. It mentions nobody. `command` is undefined for one that this release doesn't have.
 */
export function tellAct(request: StoredRequest, command: ChangeCommand | undefined): Markdown {
  const { record, votes } = request;
  const alone = record.breakGlass === true ? " without approval (break-glass)" : "";
  const reason = record.reason ? md`: “${record.reason.replace(/\.$/, "")}”` : md``;
  const yes = approvalsIn(votes).map((vote) => vote.name);
  const approved = yes.length === 0 ? "" : `; approved by ${yes.join(", ")}`;
  const { review } = request.delivered;
  const unsigned = isReviewed(record) ? "; nobody has signed the review" : "";
  const signed = review ? `; ${review.by} signed` : unsigned;
  const deed = wasDone(request, command)
    ? md`${doneWords(request, command)}${alone}${reason}`
    : md`asked for ${askedWords(request, command)}${alone}${reason}: ${outcomeWords(request)}`;
  return md`*${record.requester.name}* ${deed}${approved}${signed}.`;
}

/** The sign before it. What ran without approval has its own, however it ended. */
export function signOfAct(request: StoredRequest, command: ChangeCommand | undefined): string {
  if (request.record.breakGlass === true) return "🚨";
  if (request.state === "denied") return "⛔";
  return command ? symbolOf(request, command) : "•";
}

function wasDone(
  request: StoredRequest,
  command: ChangeCommand | undefined,
): command is ChangeCommand {
  if (request.state !== "done" || !command) return false;
  const { stage } = request;
  return !deciderOf(stage) && !isAlready(stage) && !isUnconfirmed(request, command);
}

/** `restarted web-2 in 5 s`: the headline without its capital and its period. */
function doneWords(request: StoredRequest, command: ChangeCommand): Markdown {
  const line = headline(request, command).value.replace(/\.$/, "");
  return new Markdown(lowerFirst(line));
}

function askedWords({ record }: StoredRequest, command: ChangeCommand | undefined): Markdown {
  const target = name(calledName(record.target));
  if (!command) return md`${record.command} of ${target}`;
  const undo = undoneBy(record) === undefined ? "" : " (undo)";
  return md`the ${nounOf(command)} of ${target}${detailOf(record, command)}${undo}`;
}

function outcomeWords(request: StoredRequest): Markdown {
  const { state, stage } = request;
  if (request.final) return endWords(request);
  const why = whyOf(stage);
  return md`${stateWords(state)}${why ? md` (${why})` : ""}`;
}

/** The act that a request belongs to: its own, the rollout's, or that of the request it saves. */
export const actIdOf = ({ record: { id, origin } }: StoredRequest): string =>
  actIdIn({ request: id, origin }) ?? id;

/** A rollout as far as it is told. */
export interface ToldRollout {
  requester: Pick<RequestRecord["requester"], "name">;
  /** Name of the command. */
  command: string;
  requests: readonly StoredRequest[];
  /** How many targets have no request, so far or for good, and their names where these are known. */
  unbegun?: number;
  unbegunNames?: readonly string[];
  /** How many targets were refused before they were touched. */
  refused?: number;
  isOver: boolean;
}

/**
 * A rollout in one sentence: who rolls out what, where, how each ended, and how many haven't begun.
 * `command` is undefined for one that this release doesn't have.
 */
export function tellRollout(rollout: ToldRollout, command: ChangeCommand | undefined): Markdown {
  const { requester, requests, unbegun = 0, unbegunNames = [], refused = 0, isOver } = rollout;
  const states = [...Map.groupBy(requests, ({ state }) => stateWords(state))];
  const counts = [
    ...states.map(([words, some]) => `${some.length} ${words}`),
    ...(refused > 0 ? [`${refused} refused before anything was sent`] : []),
    ...(unbegun > 0 ? [`${unbegun} ${isOver ? "never began" : "not begun yet"}`] : []),
  ];
  const isWell = counts.length === 1 && requests.every(({ state }) => state === "done");
  const what = command?.say.doing.toLowerCase() ?? rollout.command;
  const names = [...requests.map(({ record }) => record.target.name), ...unbegunNames];
  const sign = isOver ? (isWell ? "✅" : "⚠️") : "⏳";
  const rolls = isOver ? "rolled" : "is rolling";
  return md`${sign} *${requester.name}* ${rolls} out ${what} ${listed(names, 3)}: ${counts.join(", ")}.`;
}

/** A request that is no longer kept, by its records, oldest first. */
export function tellGone(id: string, entries: readonly AuditEntry[]): Markdown {
  const moved = entries.findLast(({ record }) => recordedText(record["move"]) !== "");
  const { command, target, move } = (moved ?? entries[0])?.record ?? {};
  const called = typeof target === "object" && target !== null && "name" in target;
  const on = called ? md` of ${name(target.name)}` : "";
  const is = move === undefined ? "" : md`: ${stateWords(recordedText(move))}`;
  return md`• ${recordedText(command) || "A request"}${on} (${name(id)})${is}. It is no longer kept.`;
}
