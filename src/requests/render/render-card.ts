import {
  type ButtonSpec,
  buttons,
  context,
  message,
  type Message,
  readable,
  section,
} from "../../messages/message.ts";
import { lines, type Markdown, md, name, when } from "../../messages/text.ts";
import type { ChangeCommand } from "../../registry/define.ts";
import { cardViewOf, askingBlocks, askingLine, decidedLine } from "./card-view.ts";
import type { StoredRequest } from "../journal/record.ts";
import { headline, renderResult, symbolOf } from "./render-result.ts";

/** The one message of a request in the channel, edited in place, without mentions. */
export function renderCard(
  request: StoredRequest,
  command: ChangeCommand,
  approvers: readonly string[] = [],
): Message {
  const { record } = request;
  const title = md`${symbolOf(request, command)} *${command.say.verb}* ${targetName(request)}`;
  const now = stateLine(request, command);
  const asked = md`Requested by ${record.requester.name} at ${when(record.createdAt)} · ${name(record.id)}`;
  return message(
    readable(md`${command.say.verb} ${targetName(request)}: ${now}`),
    section(lines(title, now, decidedLine(request))),
    ...(record.breakGlass ? [context(md`🚨 Break-glass: approval skipped; review pending.`)] : []),
    context(record.reason ? md`${asked} · “${record.reason}”` : asked),
    cardViewOf(request) === "asking"
      ? askingBlocks(request, approvers)
      : buttons(cardButtons(request, command)),
  );
}

/** A request that ended before its card was posted: card, result, and mention in one message. */
export function renderEnded(
  request: StoredRequest,
  command: ChangeCommand,
  attestationNote?: Markdown,
): Message {
  const result = renderResult(request, command, attestationNote);
  const [, ...below] = renderCard(request, command).blocks;
  return { text: result.text, blocks: [...result.blocks, ...below] };
}

export function targetName({ record }: Pick<StoredRequest, "record">): Markdown {
  const { target } = record;
  return target.kind === "vm" && target.projectName
    ? md`${name(target.name)} in ${target.projectName}`
    : name(target.name);
}

function stateLine(request: StoredRequest, command: ChangeCommand): Markdown {
  const { progress, state } = request;
  switch (cardViewOf(request)) {
    case "asking":
      return askingLine(request);
    case "waiting": {
      if (!progress.waitsFor) return md`Waiting: ${progress.why}.`;
      const { requesterName, command: other = "request", request: id } = progress.waitsFor;
      return md`Waiting for ${requesterName ? md`${requesterName}'s` : "another"} ${other} (${name(id)}) to finish: one change per target.`;
    }
    case "looking":
      return md`The compute service gave no clear answer. Checking what happened before anything else is done.`;
    case "unknown":
      return unknownLines(request);
    case "ended":
      return headline(request, command);
    default:
      return state === "sending" || state === "accepted"
        ? md`${command.say.doing} ${name(request.record.target.name)}…`
        : md`${command.say.doing} ${name(request.record.target.name)} soon…`;
  }
}

function unknownLines({ progress, record }: StoredRequest): Markdown {
  const { answer, lastLook, sentAt } = progress;
  const said =
    answer === undefined || answer.class === "unclear"
      ? md`nothing clear`
      : md`${answer.class}${answer.status ? ` (${answer.status})` : ""}${answer.message ? `: ${answer.message}` : ""}`;
  return lines(
    md`*Outcome unknown.* Check the target, then record what happened.`,
    sentAt !== undefined && md`• Sent at ${when(sentAt)}. The compute service answered: ${said}.`,
    progress.why !== undefined && md`• Why: ${progress.why}.`,
    lastLook && md`• Last read: ${lastLook.status}, at ${when(lastLook.at)}.`,
    md`• It is not sent again, and ${name(record.target.name)} stays locked for changes until someone records it.`,
  );
}

function cardButtons(request: StoredRequest, command: ChangeCommand): ButtonSpec[] {
  const value = JSON.stringify({ request: request.record.id });
  switch (cardViewOf(request)) {
    case "waiting":
      return [
        ...(command.class === "secret"
          ? [{ label: "Open console", action: "request:open", value } as const]
          : []),
        { label: "Cancel", action: "request:cancel", value },
      ];
    case "unknown":
      return [
        { label: "It happened", action: "request:happened", value },
        { label: "It did not happen", action: "request:not-happened", value },
        { label: "Check again", action: "request:look", value },
      ];
    case "ended":
      if (mayUndo(request, request.changedAt))
        return [{ label: "Undo", action: "request:undo", value }];
      return mayRetry(request) ? [{ label: "Try again", action: "request:retry", value }] : [];
    default:
      return [];
  }
}

/** A retry is a new request with its own checks. */
export function mayRetry({ state }: Pick<StoredRequest, "state">): boolean {
  return ["failed", "rejected", "not-applied", "expired"].includes(state);
}

const undoWithinMs = 24 * 3600_000;

/** Whether restoring the safety snapshot is still offered. `now` is Redis time. */
export function mayUndo({ state, progress, changedAt }: StoredRequest, now: number): boolean {
  return (
    state === "done" && progress.safety?.snapshotId !== undefined && now - changedAt < undoWithinMs
  );
}
