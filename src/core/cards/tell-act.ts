import { Markdown, md, name } from "../../messages/message.ts";
import { type ChangeCommand, calledName, nounOf } from "../../registry/define.ts";
import { undoneBy } from "../request/origin.ts";
import { isReviewed } from "../request/record.ts";
import { deciderOf, isAlready, stateWords, whyOf } from "../request/stage.ts";
import type { StoredRequest } from "../request/stored-request.ts";
import { detailOf } from "./asking.ts";
import { endWords, headline, isUnconfirmed, symbolOf } from "./render-result.ts";

/**
 * A request in one sentence: who did what, or asked for it and how that ended, why, and who approved
 * or signed it. It mentions nobody. `command` is undefined for one that this release doesn't have.
 */
export function tellAct(request: StoredRequest, command: ChangeCommand | undefined): Markdown {
  const { record, votes } = request;
  const alone = record.breakGlass === true ? " without approval (break-glass)" : "";
  const reason = record.reason ? md`: “${record.reason.replace(/\.$/, "")}”` : md``;
  const yes = votes.filter(({ vote }) => vote === "approve").map((vote) => vote.name);
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
  return new Markdown(`${line.slice(0, 1).toLowerCase()}${line.slice(1)}`);
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
