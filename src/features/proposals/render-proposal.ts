import type { Policy } from "../../config/policy-file.ts";
import {
  buttons,
  channelLink,
  context,
  lines,
  Markdown,
  md,
  message,
  type Message,
  name,
  news,
  section,
  when,
} from "../../messages/message.ts";
import { askOnce } from "../../core/permit/refusal.ts";
import type { ChangeCommand } from "../../registry/define.ts";
import type { Freeze } from "../../core/request/freeze.ts";
import { deedOf, frozenWords, linked, parametersOf } from "../../core/cards/asking.ts";
import type { StoredProposal } from "./proposals.ts";
import type { StoredRequest } from "../../core/request/stored-request.ts";

interface Beside {
  policy: Pick<Policy, "confirm">;
  frozen: Freeze | undefined;
  /** Channels where it could be run, if it can't be run where its card is; otherwise undefined. */
  runIn: readonly string[] | undefined;
  /** The request made of it, and the link to that request's message. */
  request: StoredRequest | undefined;
  link: string | undefined;
}

/**
 * Renders the card of a proposal, which is edited in place. The change itself has its own messages,
 * as if it had been typed.
 */
export function renderProposal(
  proposal: StoredProposal,
  command: ChangeCommand,
  beside: Beside,
): Message {
  const { record, createdAt } = proposal;
  const { by, risk, reason, target, id } = record;
  const deed = deedOf(record, command);
  const who = "service" in by ? md`${name(by.service)} proposes` : md`Proposed in your name`;
  const said = "service" in by ? `${by.service} proposes` : "Proposed in your name";
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
  return message(
    news(md`${said}: ${deed}: “${reason}”`),
    ...(isOpen && risk.length > 0
      ? [section(lines(...risk.map((line) => new Markdown(line))))]
      : []),
    section(lines(md`🤖 ${who}: *${deed}*: “${reason}”`, stateLine(proposal, beside))),
    ...buttons(
      isOpen
        ? [
            ...(beside.frozen || beside.runIn
              ? []
              : [askOnce(run, command, target, beside.policy)]),
            { label: "Dismiss", about: deed, action: "proposal:dismiss", value },
          ]
        : [],
    ),
    context(lines(...parameters, md`Proposed at ${when(createdAt)} · ${name(id)}`)),
  );
}

const isRunnable = ({ state }: StoredProposal, { request }: Beside) =>
  state === "open" || (state === "running" && !request);

function stateLine(proposal: StoredProposal, beside: Beside): Markdown {
  const { record, state, dismissal } = proposal;
  const { frozen, request, link } = beside;
  if (request) {
    const { id, requester } = request.record;
    return md`▶️ Run by ${requester.name}: ${link === undefined ? name(id) : linked(link, id)}.`;
  }
  if (dismissal)
    return md`🚫 Dismissed by ${dismissal.name}: “${dismissal.reason}”. Nothing was done.`;
  if (state === "expired") return md`⌛ Expired: no one ran it in time. Nothing was done.`;
  const until = md`Until ${when(record.expiresAt, "{date_short_pretty} {time}")}. The person who runs it requests it, with their own rights and the usual approvals.`;
  return lines(frozenWords(frozen), until, runInLine(proposal, beside));
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
