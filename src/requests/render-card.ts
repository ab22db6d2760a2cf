import {
  type ButtonSpec,
  buttons,
  context,
  message,
  type Message,
  readable,
  section,
} from "../messages/message.ts";
import { lines, type Markdown, md, name, when } from "../messages/text.ts";
import type { ChangeCommand } from "../registry/define.ts";
import { faceOf } from "./face.ts";
import type { StoredRequest } from "./record.ts";
import { askingBlocks, askingLine, decidedLine } from "./render-asking.ts";
import { headline, symbolOf } from "./render-result.ts";

/** The one message of a request in the channel, edited in place. It notifies nobody: names here are no mentions. */
export function renderCard(
  request: StoredRequest,
  command: ChangeCommand,
  approvers: readonly string[] = [],
): Message {
  const { record } = request;
  const title = md`${symbolOf(request)} *${command.say.verb}* ${targetName(request)}`;
  const now = stateLine(request, command);
  const asked = md`Asked by ${record.requester.name} at ${when(record.createdAt)} · ${name(record.id)}`;
  return message(
    readable(md`${command.say.verb} ${targetName(request)}: ${now}`),
    section(lines(title, now, decidedLine(request))),
    ...(record.breakGlass
      ? [context(md`🚨 Break-glass: nobody was waited for; a review is open.`)]
      : []),
    context(record.reason ? md`${asked} · “${record.reason}”` : asked),
    faceOf(request) === "asking" ? askingBlocks(request, approvers) : buttons(cardButtons(request)),
  );
}

export function targetName({ record }: Pick<StoredRequest, "record">): Markdown {
  const { target } = record;
  return target.kind === "vm" && target.projectName
    ? md`${name(target.name)} in ${target.projectName}`
    : name(target.name);
}

function stateLine(request: StoredRequest, command: ChangeCommand): Markdown {
  const { progress, state } = request;
  switch (faceOf(request)) {
    case "asking":
      return askingLine(request);
    case "waiting":
      return progress.waitsFor
        ? md`Waiting for ${progress.waitsFor.requesterName ? md`${progress.waitsFor.requesterName}'s` : "another"} ${progress.waitsFor.command ?? "request"} (${name(progress.waitsFor.request)}) to end: one change at a time.`
        : md`Waiting: ${progress.why}.`;
    case "looking":
      return md`The service gave no clear answer. Looking at what happened before anything else is done.`;
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

/** What a person needs in order to decide what nobody could read. */
function unknownLines({ progress, record }: StoredRequest): Markdown {
  const { answer, lastLook, sentAt } = progress;
  const said =
    answer === undefined || answer.class === "unclear"
      ? md`nothing clear`
      : md`${answer.class}${answer.status ? ` (${answer.status})` : ""}${answer.message ? `: ${answer.message}` : ""}`;
  return lines(
    md`*Outcome unknown.* Please look, and say how it ended.`,
    sentAt !== undefined && md`• Sent at ${when(sentAt)}. The service said: ${said}.`,
    progress.why !== undefined && md`• Why: ${progress.why}.`,
    lastLook && md`• Last read: ${lastLook.status}, at ${when(lastLook.at)}.`,
    md`• It is not sent again, and ${name(record.target.name)} stays locked for changes until somebody says.`,
  );
}

function cardButtons(request: StoredRequest): ButtonSpec[] {
  const value = JSON.stringify({ request: request.record.id });
  switch (faceOf(request)) {
    case "waiting":
      return [{ label: "Cancel", action: "request:cancel", value }];
    case "unknown":
      return [
        { label: "It happened", action: "request:happened", value },
        { label: "It did not happen", action: "request:not-happened", value },
        { label: "Look again", action: "request:look", value },
      ];
    case "ended":
      if (mayUndo(request, request.changedAt))
        return [{ label: "Undo", action: "request:undo", value }];
      return mayRetry(request)
        ? [
            {
              label:
                request.state === "expired" && request.record.approval ? "Ask again" : "Try again",
              action: "request:retry",
              value,
            },
          ]
        : [];
    default:
      return [];
  }
}

/** Asking again makes a new request with its own checks; offered where nothing happened, or it ended in failure. */
export function mayRetry({ state }: Pick<StoredRequest, "state">): boolean {
  return (
    state === "failed" || state === "rejected" || state === "not-applied" || state === "expired"
  );
}

const undoWithinMs = 24 * 3600_000;

/** Whether the safety snapshot taken before it is still offered as the way back. `now` is Redis time. */
export function mayUndo({ state, progress, changedAt }: StoredRequest, now: number): boolean {
  return (
    state === "done" && progress.safety?.snapshotId !== undefined && now - changedAt < undoWithinMs
  );
}
