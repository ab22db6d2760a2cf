import { recordedText } from "../../audit/render.ts";
import { type AuditEntry, actIdIn } from "../../audit/read-audit.ts";
import { Markdown, listed, md, name } from "../../messages/markdown.ts";
import { type ChangeCommand, calledName, nounOf } from "../../registry/define.ts";
import { undoneBy } from "../request/origin.ts";
import { type RequestRecord, isReviewed } from "../request/record.ts";
import { deciderOf, isAlready, stateWords, whyOf } from "../request/stage.ts";
import type { StoredRequest } from "../request/stored-request.ts";
import { detailOf } from "./asking.ts";
import { endWords, isUnconfirmed, outcomeOf, signs } from "./render-result.ts";
import { lowerFirst } from "../../text/letter-case.ts";
import { approvalsIn } from "../permit/votes.ts";

/**
 * A request in one sentence after the sign of its card: who did what, or asked for it and how that
 * ended, why, and who approved or signed it. It mentions nobody. `command` is undefined for one that
 * this release doesn't have.
 */
export function tellAct(
  request: StoredRequest,
  command: ChangeCommand | undefined,
  /** Whether what stands beside it asks for the signature that is missing. */
  { asksForReview = false } = {},
): Markdown {
  const { record, votes } = request;
  const alone = record.breakGlass === true ? " 🚨 without approval (break-glass)" : "";
  const why = record.reason ? md`“${record.reason.replace(/\.$/, "")}”` : "";
  const yes = approvalsIn(votes).map((vote) => vote.name);
  const approved = yes.length === 0 ? "" : `; approved by ${yes.join(", ")}`;
  const { review } = request.delivered;
  const unsigned = isReviewed(record) && !asksForReview ? "; nobody has signed the review" : "";
  const signed = review ? `; ${review.by} signed` : unsigned;
  const deed = wasDone(request, command)
    ? md`${doneWords(request, command)}${alone}${why && md`: ${why}`}`
    : md`asked for ${askedWords(request, command)}${alone}${why && md` (${why})`}${outcomeWords(request, command)}`;
  const sign = command ? outcomeOf(request, command).sign : "•";
  return md`${sign} *${record.requester.name}* ${deed}${approved}${signed}.`;
}

/** Whether a request made its change, which Gatehouse itself read. */
export function wasDone(
  request: StoredRequest,
  command: ChangeCommand | undefined,
): command is ChangeCommand {
  if (request.state !== "done" || !command) return false;
  const { stage } = request;
  return !deciderOf(stage) && !isAlready(stage) && !isUnconfirmed(request, command);
}

/** `restarted web-2 in 5 s`: the outcome without its capital and its period. */
function doneWords(request: StoredRequest, command: ChangeCommand): Markdown {
  const line = outcomeOf(request, command).text.value.replace(/\.$/, "");
  return new Markdown(lowerFirst(line));
}

function askedWords({ record }: StoredRequest, command: ChangeCommand | undefined): Markdown {
  const target = name(calledName(record.target));
  if (!command) return md`${record.command} of ${target}`;
  const undo = undoneBy(record) === undefined ? "" : " (undo)";
  return md`the ${nounOf(command)} of ${target}${detailOf(record, command)}${undo}`;
}

function outcomeWords(request: StoredRequest, command: ChangeCommand | undefined): Markdown {
  const { state, stage } = request;
  if (command && request.state === "done" && isUnconfirmed(request, command))
    return md`: the compute service accepted it, and nothing more can be confirmed`;
  const why = whyOf(stage);
  if (!request.final) return md`: ${stateWords(state)}${why ? md` (${why})` : ""}`;
  const end = endWords(request).value.replace(/^(?:It|Nobody|Nothing|Someone|Too) /, lowerFirst);
  return md`${deciderOf(stage) ? ";" : ", but"} ${new Markdown(end)}`;
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
  /** The state of the rollout, where that is known: `paused`. */
  state?: string;
}

/** How a rollout stands, at a glance. `isWell`: nothing failed. */
export function rolloutSign(
  state: string | undefined,
  { isOver, isWell }: { isOver: boolean; isWell: boolean },
): string {
  if (state === "failed" || state === "stopped") return signs.failed;
  if (state === "paused") return "⏸️";
  if (!isOver) return signs.open;
  return isWell ? signs.done : signs.partly;
}

/**
 * A rollout in one sentence: who rolls out what, where, how each ended, and how many haven't begun.
 * `command` is undefined for one that this release doesn't have.
 */
export function tellRollout(rollout: ToldRollout, command: ChangeCommand | undefined): Markdown {
  const requests = rollout.requests.toSorted((a, b) => a.record.createdAt - b.record.createdAt);
  const { requester, unbegun = 0, unbegunNames = [], refused = 0, isOver } = rollout;
  const states = [...Map.groupBy(requests, ({ state }) => stateWords(state))];
  const counts = [
    ...states.map(([words, some]) => `${some.length} ${words}`),
    ...(refused > 0 ? [`${refused} refused before anything was sent`] : []),
    ...(unbegun > 0 ? [`${unbegun} ${isOver ? "never began" : "not begun yet"}`] : []),
  ];
  const isWell = counts.length === 1 && requests.every(({ state }) => state === "done");
  const deed = command?.say.doing.toLowerCase() ?? rollout.command;
  const names = [...requests.map(({ record }) => record.target.name), ...unbegunNames];
  const sign = rolloutSign(rollout.state, { isOver, isWell });
  const rolls = isOver ? "rolled" : "is rolling";
  return md`${sign} *${requester.name}* ${rolls} out ${deed} ${listed(names, 3)}: ${counts.join(", ")}.`;
}

/** A request that is no longer kept, by its records, oldest first. */
export function tellGone(id: string, entries: readonly AuditEntry[]): Markdown {
  const moved = entries.findLast(({ record }) => recordedText(record["move"]) !== "");
  const { command, target, move } = (moved ?? entries[0])?.record ?? {};
  const called = typeof target === "object" && target !== null && "name" in target;
  const on = called ? md` of ${name(target.name)}` : "";
  const stateText = move === undefined ? "" : md`: ${stateWords(recordedText(move))}`;
  return md`• ${recordedText(command) || "A request"}${on} (${name(id)})${stateText}. It is no longer kept.`;
}
