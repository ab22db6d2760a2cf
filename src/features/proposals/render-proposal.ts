import type { Policy } from "../../config/policy-file.ts";
import { type Message } from "../../messages/blocks.ts";
import { small, waysRow } from "../../messages/parts.ts";
import { type ButtonSpec } from "../../messages/buttons.ts";
import { card } from "../../messages/card.ts";
import { limits } from "../../messages/limits.ts";
import {
  channelLink,
  lines,
  Markdown,
  md,
  mention,
  name,
  when,
  dayAndTime,
  withFullStop,
} from "../../messages/markdown.ts";
import { askOnce } from "../../core/permit/refusal.ts";
import { calledName, type ChangeCommand, dottedName } from "../../registry/define.ts";
import { withTarget } from "../../registry/invocation.ts";
import { askAction } from "../proposing.ts";
import type { Freeze } from "../../core/request/freeze.ts";
import {
  askingLine,
  describeChange,
  frozenWords,
  linked,
  parametersOf,
} from "../../core/cards/asking.ts";
import type { AfterNote } from "../../attestation/render-attestation.ts";
import { mentions, outcomeOf } from "../../core/cards/render-result.ts";
import type { ProposalRecord, StoredProposal } from "./proposals.ts";
import type { StoredRequest } from "../../core/request/stored-request.ts";

interface Beside {
  policy: Pick<Policy, "confirm" | "services">;
  frozen: Freeze | undefined;
  /** Channels where it could be run, if it can't be run where its card is; otherwise undefined. */
  runIn: readonly string[] | undefined;
  /** The request made of it, the link to that request's message, and what attestation says. */
  request: StoredRequest | undefined;
  link: string | undefined;
  note?: AfterNote | undefined;
}

/**
 * Renders the card of a proposal, which is edited in place: it asks, says who runs it, and ends
 * with the result. The change itself has its own messages, in the thread of this card.
 */
export function renderProposal(
  proposal: StoredProposal,
  command: ChangeCommand,
  beside: Beside,
): Message {
  const { record, createdAt } = proposal;
  const { risk, reason, target, id } = record;
  const { request, link } = beside;
  const deed = describeChange(record, command);
  const parameters = parametersOf(record, command).map(
    ([label, value]) => md`*${label}*: ${value}`,
  );
  const isOpen = isRunnable(proposal, beside);
  const value = JSON.stringify({ proposal: id });
  const run = {
    label: "Run",
    about: deed,
    action: "proposal:run",
    value,
    style: "primary" as const,
  };
  const made = request && md` · ${linked(link, request.record.id)}`;
  const canRun = !beside.frozen && !beside.runIn;
  const ways = [
    ...(canRun ? [askOnce(run, command, target, beside.policy)] : []),
    { label: "Dismiss", about: deed, action: "proposal:dismiss", value },
  ];
  return card({
    above: isOpen ? lines(...risk.map((line) => new Markdown(line))) : undefined,
    title: md`${whoLine(record, isOpen, beside.policy)}*${deed}*: “${reason}”`,
    push: md`${whoAsks(record)}${deed}: “${reason}”`,
    lines: [stateLine(proposal, command, beside)],
    body: [
      // Above the small print, so that they are on a phone's first screen.
      waysRow(isOpen ? ways : []),
      small(lines(...parameters, md`Proposed at ${when(createdAt)} · ${name(id)}${made ?? ""}`)),
    ],
  });
}

/** Begins the notification. */
function whoAsks({ by: proposer }: ProposalRecord): string {
  if ("asker" in proposer) return `${proposer.asker.name} asks: `;
  return "service" in proposer ? `${proposer.service} proposes: ` : "Proposed in your name: ";
}

/** The most groups and people that a card mentions. */
const mostMentioned = 3;

/**
 * Begins the card. While it asks, it mentions those who may run it, or whom the service's `notify`
 * names. Slack notifies of a mention once, when the card is posted.
 */
function whoLine(
  { by: proposer }: ProposalRecord,
  isOpen: boolean,
  { services }: Pick<Policy, "services">,
): Markdown {
  if ("service" in proposer) {
    const called = isOpen ? mentions(services[proposer.service]?.notify ?? []) : "";
    const whom = called === "" ? "" : new Markdown(` to ${called}`);
    return md`🤖 ${name(proposer.service)} proposes${whom}: `;
  }
  if ("person" in proposer) return md`🤖 Proposed in your name: `;
  const { asker, allowed } = proposer;
  const groupsFirst = allowed.toSorted(
    (a, b) => Number(!a.startsWith("S")) - Number(!b.startsWith("S")),
  );
  const whom = isOpen ? mentions(groupsFirst.slice(0, mostMentioned)) : "";
  return md`🙋 ${asker.name} ${isOpen ? "asks" : "asked"}${whom && new Markdown(` ${whom}`)}: `;
}

const isRunnable = ({ state }: StoredProposal, { request }: Beside) =>
  state === "open" || (state === "running" && !request);

function stateLine(proposal: StoredProposal, command: ChangeCommand, beside: Beside): Markdown {
  const { record } = proposal;
  const { frozen, request, link } = beside;
  if (request && !request.final) {
    const { id, requester } = request.record;
    const requestLink = link === undefined ? name(id) : linked(link, id);
    return request.state === "draft"
      ? md`✋ ${requester.name} requested it: ${requestLink}. ${askingLine(request)}`
      : md`▶️ Run by ${requester.name}: ${requestLink}.`;
  }
  const result = resultOf(proposal, command, beside);
  if (result) return result;
  const until = md`Until ${dayAndTime(record.expiresAt)}.`;
  const press = md` Press *Run* and it runs in your name, with the usual approvals.`;
  const canRun = frozen === undefined && beside.runIn === undefined;
  return lines(
    frozenWords(frozen),
    md`${until}${canRun ? press : ""}`,
    runInLine(proposal, beside),
  );
}

/** How the proposal ended: with the outcome of its request, or without one. Undefined before. */
function resultOf(
  { state, dismissal, record }: StoredProposal,
  command: ChangeCommand,
  { request, note }: Pick<Beside, "request" | "note">,
): Markdown | undefined {
  const { by: proposer } = record;
  const deed = md`*${describeChange(record, command)}*`;
  if (request) {
    if (!request.final) return undefined;
    const { sign, text } = outcomeOf(request, command, note);
    return md`${sign} ${text} (${request.record.requester.name})`;
  }
  if (dismissal) {
    const isWithdrawn = "asker" in proposer && proposer.asker.id === dismissal.id;
    const how = isWithdrawn ? "withdrew" : "dismissed";
    return md`🚫 ${withFullStop(md`${dismissal.name} ${how} ${deed}: “${dismissal.reason}”`)} Nothing was done.`;
  }
  return state === "expired"
    ? md`⌛ Expired: nobody ran ${deed} in time. Nothing was done.`
    : undefined;
}

/** Renders what the person who asked is told at the end. Undefined before. */
export function renderResultForAsker(
  proposal: StoredProposal,
  command: ChangeCommand,
  { request, note, isBelowCard }: Pick<Beside, "request" | "note"> & { isBelowCard: boolean },
): Message | undefined {
  const { record } = proposal;
  const result = resultOf(proposal, command, { request, note });
  if (!result || !("asker" in record.by)) return undefined;
  const whom = isBelowCard ? md`${mention(record.by.asker.id)} ` : md``;
  const asked = isBelowCard
    ? undefined
    : md`You asked: *${describeChange(record, command)}*: “${record.reason}”`;
  const isExpired = request === undefined && proposal.state === "expired";
  return card({
    title: md`${whom}${result}`,
    lines: [asked],
    ways: isExpired ? askAgain(record, command) : [],
  });
}

/** Opens the form in which the same change is asked for once more. */
function askAgain({ input, target }: ProposalRecord, command: ChangeCommand): ButtonSpec[] {
  const named = { command: dottedName(command), input: withTarget(command, input, target) };
  const value = JSON.stringify(named);
  if (value.length > limits.buttonValue) return [];
  return [{ label: "Ask again", about: calledName(target), action: askAction, value }];
}

/** Reminds the thread of a change that somebody asked others for, half of its time before the end. */
export function renderReminder({ record }: StoredProposal, command: ChangeCommand): Message {
  const until = when(record.expiresAt, "{time}");
  return card({
    sign: "⏰",
    title: md`Half of the time has passed: nobody has run *${describeChange(record, command)}* yet. Until ${until}, *Run* on the message above runs it.`,
    push: md`⏰ Nobody has run ${describeChange(record, command)} yet.`,
  });
}

/**
 * If everyone would be refused in this channel, the card says where to type the command instead of
 * having a button.
 */
function runInLine({ record }: StoredProposal, { runIn }: Beside): Markdown | undefined {
  if (runIn === undefined) return undefined;
  const places = new Markdown(runIn.map((id) => channelLink(id).value).join(", "));
  return md`It can't be run in this channel (\`channels\` in gatehouse.yml). Type ${name(`/${record.words}`)} in ${places}.`;
}
