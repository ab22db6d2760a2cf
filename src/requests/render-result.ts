import { context, message, type Message, readable, section } from "../messages/message.ts";
import {
  hintOf,
  duration,
  lines,
  type Markdown,
  md,
  mention,
  name,
  when,
} from "../messages/text.ts";
import type { ChangeCommand, Seen } from "../registry/define.ts";
import { faceOf } from "./face.ts";
import { decidedLine } from "./render-asking.ts";
import { statusOf } from "./judge.ts";
import type { StoredRequest } from "./record.ts";

/** A message of the request's thread. `notice` is one of `noticesDue`. */
export function renderNotice(
  notice: string,
  request: StoredRequest,
  command: ChangeCommand,
  addendum?: Markdown,
): Message {
  if (notice === "result") return renderResult(request, command, addendum);
  const { record, progress } = request;
  const again = notice.startsWith("reminder") ? "Still unknown" : "Outcome unknown";
  const text = md`❓ ${mention(record.requester.id)} ${again}: did “${command.say.verb} ${name(record.target.name)}” happen?${
    progress.why ? md` (${progress.why})` : ""
  } The message above has the facts and the buttons. Nothing is sent again by itself.`;
  return message(readable(text), section(text));
}

/** How it ended, with what was read, and the one mention of whoever asked. */
export function renderResult(
  request: StoredRequest,
  command: ChangeCommand,
  addendum?: Markdown,
): Message {
  const { record, progress } = request;
  const said = md`${symbolOf(request)} ${mention(record.requester.id)} ${headline(request, command)}`;
  const facts = [
    progress.sentAt !== undefined && md`sent ${when(progress.sentAt)}`,
    progress.mark && md`${progress.mark.status} seen ${when(progress.mark.at)}`,
    progress.lastLook && md`${progress.lastLook.status} read ${when(progress.lastLook.at)}`,
    request.attempt > 1 && md`attempt ${request.attempt}`,
  ].filter((fact) => fact !== false && fact !== undefined);
  const own = (
    command.tell as
      | ((before: unknown, after: unknown, args: unknown, answer: unknown) => Markdown | undefined)
      | undefined
  )?.(progress.before, progress.after, record.input, progress.answer ?? {});
  return message(
    readable(said),
    section(
      lines(
        said,
        request.state === "done" ? own : undefined,
        decidedLine(request),
        addendum,
        hintOf(progress.hint),
      ),
    ),
    ...(facts.length > 0 && !progress.already ? [context(join(facts))] : []),
  );
}

/** One sentence: what came of it. */
export function headline(request: StoredRequest, command: ChangeCommand): Markdown {
  const { record, progress, state, changedAt } = request;
  const target = name(record.target.name);
  const { verb, done } = command.say;
  const why = progress.why ? md`: ${progress.why.replace(/\.$/, "")}` : md``;
  switch (state) {
    case "done":
      if (progress.decidedBy)
        return md`${done} ${target}, says ${whoDecided(progress.decidedBy)}${reasonOf(request)}.`;
      if (progress.already)
        return md`${target} is ${statusOf(progress.after)} already: nothing was sent.`;
      if (command.effect.provenBy && progress.answer?.snapshotId === undefined)
        return md`${verb} of ${target} was accepted by the service, which is all that can be known.`;
      return md`${done} ${target}${command.effect.provenBy ? "" : md`: ${arrow(progress.before, progress.after)}`} in ${duration(changedAt - (progress.sentAt ?? record.createdAt))}.`;
    case "failed":
      return md`${verb} of ${target} ended badly: the service reports ${statusOf(progress.after)}.`;
    case "rejected":
      return md`${verb} of ${target} was not done${why}.`;
    case "not-applied":
      if (progress.decidedBy)
        return md`${verb} of ${target} did not happen, says ${whoDecided(progress.decidedBy)}${reasonOf(request)}.`;
      return md`${verb} of ${target} did not happen${why}.`;
    case "denied":
      return md`${verb} of ${target} was denied${why}.`;
    case "expired":
      return md`${verb} of ${target} was not begun${why}.`;
    default:
      return md`${verb} of ${target} was cancelled${why}.`;
  }
}

function reasonOf({ progress }: StoredRequest): Markdown {
  return progress.decidedBy?.reason ? md`: “${progress.decidedBy.reason}”` : md``;
}

/** A person by name: shown, not notified. */
function whoDecided(decided: { id: string; name?: string }): Markdown {
  return decided.name === undefined ? name(decided.id) : md`${decided.name}`;
}

function arrow(before: Seen | undefined, after: Seen | undefined): Markdown {
  return before === undefined || (Array.isArray(before) && before.length === 0)
    ? md`${statusOf(after)}`
    : md`${statusOf(before)} → ${statusOf(after)}`;
}

function join(parts: readonly Markdown[]): Markdown {
  return parts.reduce((all, part) => md`${all} · ${part}`);
}

export function symbolOf(request: Pick<StoredRequest, "state" | "final" | "progress">): string {
  switch (faceOf(request)) {
    case "ended":
      return request.state === "done"
        ? "✅"
        : request.state === "failed" || request.state === "rejected"
          ? "❌"
          : "🚫";
    case "unknown":
      return "❓";
    case "looking":
      return "🔎";
    default:
      return "⏳";
  }
}
