import {
  buttons,
  type ButtonSpec,
  context,
  message,
  type Message,
  news,
  section,
} from "../../messages/message.ts";
import { lines, Markdown, md, name, when } from "../../messages/text.ts";
import { type ChangeCommand, calledName } from "../../registry/define.ts";
import type { StoredRequest } from "../journal/record.ts";
import {
  askingLine,
  askingNews,
  factLines,
  fingerprintLine,
  riskLines,
  voteButtons,
  whyButton,
} from "./asking.ts";
import { cardViewOf, decidedLine, mentions } from "./card-view.ts";
import { headline, isRefusedInError, symbolOf } from "./render-result.ts";

/** Of a card that is in the channel of a team, or should be. */
interface Place {
  /** ` in #ops`: where it was requested, when that is elsewhere. */
  from?: Markdown | undefined;
  /** Why it isn't there. */
  note?: Markdown | undefined;
}

/** The one message of a request in the channel, edited in place. Mentions nobody but those who may approve, once. */
export function renderCard(
  request: StoredRequest,
  command: ChangeCommand,
  approvers: readonly string[] = [],
  { from = md``, note }: Place = {},
): Message {
  const { record } = request;
  const title = titleOf(request, command);
  const emergency = record.breakGlass
    ? [context(md`🚨 Break-glass: approval skipped; review pending.`)]
    : [];
  if (cardViewOf(request) === "asking")
    return askingCard(title, request, command, approvers, { from, note });
  const now = stateLine(request, command);
  const asked = md`Requested by ${record.requester.name}${from} at ${when(record.createdAt)} · ${name(record.id)}`;
  return message(
    cardViewOf(request) === "running" && request.state !== "authorized"
      ? news(md`${command.say.doing} ${targetName(request)}…`)
      : news(md`${verbOf(request, command)} ${targetName(request)}: ${now}`),
    section(lines(title, now, decidedLine(request))),
    ...emergency,
    context(record.reason ? md`${asked} · “${record.reason}”` : asked),
    buttons(cardButtons(request, command)),
  );
}

/** What, where, why, and what is lost fit on a phone's first screen, above the buttons; facts and the rule are below. */
function askingCard(
  title: Markdown,
  request: StoredRequest,
  command: ChangeCommand,
  approvers: readonly string[],
  { from = md``, note }: Place,
): Message {
  const { record } = request;
  const reason = record.reason ? md`: “${record.reason}”` : "";
  const asked = md`Requested by ${record.requester.name}${from} at ${when(record.createdAt)}${reason}`;
  const called = mentions(approvers);
  return message(
    news(askingNews(request, command)),
    section(lines(title, asked, riskLines(request, command), askingLine(request))),
    buttons([...voteButtons(request, command), ...cardButtons(request, command)]),
    // Small, so that a phone shows the whole card
    context(lines(...factLines(request, command))),
    context(
      ...(called === "" ? [] : [new Markdown(`Approvers: ${called}`)]),
      md`${name(record.id)} · ${fingerprintLine(request)}`,
    ),
    note && context(note),
  );
}

/** `⏳ Restore db-1 in payments from nightly` */
export function titleOf(request: StoredRequest, command: ChangeCommand): Markdown {
  return md`${symbolOf(request, command)} *${verbOf(request, command)}* ${targetName(request)}${detailOf(request, command)}`;
}

/** `Restore`, or that it is an undo. */
function verbOf({ record }: Pick<StoredRequest, "record">, command: ChangeCommand): string {
  return record.undoes === undefined ? command.say.verb : `Undo: ${command.say.verb}`;
}

/** A request that ended before its card was posted: card, result, and mention in one message. */
export function withResult(result: Message, card: Message): Message {
  const [, ...below] = card.blocks;
  return { text: result.text, blocks: [...result.blocks, ...below] };
}

export function targetName({ record }: Pick<StoredRequest, "record">): Markdown {
  const { target } = record;
  return target.kind === "vm" && target.projectName && !target.sharesName
    ? md`${name(target.name)} in ${target.projectName}`
    : name(calledName(target));
}

function detailOf({ record }: StoredRequest, command: ChangeCommand): Markdown {
  const detail = command.say.detail?.(record.input, record.labels ?? {});
  return detail === undefined ? md`` : md` ${detail}`;
}

function stateLine(request: StoredRequest, command: ChangeCommand): Markdown {
  const { progress, record } = request;
  const target = name(calledName(record.target));
  switch (cardViewOf(request)) {
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
    case "asking":
      return askingLine(request);
    default:
      // Nothing was sent yet; true after the send too, because the card is edited only for what lasts
      if (request.state === "authorized") return md`Requested. The result will be in the thread.`;
      return progress.sentAt === undefined
        ? md`${command.say.doing} ${target}…`
        : md`${command.say.doing} ${target}… sent at ${when(progress.sentAt)}, waiting until ${command.say.until ?? "it has settled"}.`;
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
    md`• It is not sent again, and ${name(calledName(record.target))} stays locked for changes until someone records it.`,
  );
}

export function cardButtons(request: StoredRequest, command: ChangeCommand): ButtonSpec[] {
  const value = JSON.stringify({ request: request.record.id });
  switch (cardViewOf(request)) {
    case "asking":
      return [{ label: "Cancel", action: "request:cancel", value }, whyButton(request)];
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
      if (isRefusedInError(request)) return afterRefusal(request);
      if (request.state === "done") return nextButtons(request, command);
      if (!mayRetry(request)) return [];
      return [{ label: retryWords(request), action: "request:retry", value }];
    default:
      return [];
  }
}

function nextButtons({ record }: StoredRequest, command: ChangeCommand): ButtonSpec[] {
  return (command.next ?? []).map(({ label, command: next }) => ({
    label,
    action: "request:next",
    value: JSON.stringify({ request: record.id, next }),
  }));
}

/** Another try would be refused again: what else there is. */
function afterRefusal({ record: { target } }: StoredRequest): ButtonSpec[] {
  const value = JSON.stringify({ vm: target.id });
  return [
    { label: "Restore", action: "run:vm.restore", value },
    { label: "Console", action: "run:vm.console", value },
    { label: "Attest", action: "run:vm.attest", value },
  ];
}

/** A retry is a new request with its own checks. */
export function mayRetry({ state, progress }: Pick<StoredRequest, "state" | "progress">): boolean {
  if (state === "cancelled") return progress.wasFrozen === true;
  return ["failed", "rejected", "not-applied", "expired", "denied"].includes(state);
}

/** What was tried is tried again; what people or rules turned away is requested again. */
function retryWords({ state }: StoredRequest): string {
  return ["denied", "expired", "cancelled"].includes(state) ? "Request again" : "Try again";
}

const undoWithinMs = 24 * 3600_000;

/** Whether restoring the safety snapshot is still offered. `now` is Redis time. */
export function mayUndo({ state, progress, changedAt }: StoredRequest, now: number): boolean {
  return (
    state === "done" && progress.safety?.snapshotId !== undefined && now - changedAt < undoWithinMs
  );
}
