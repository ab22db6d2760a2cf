import { shortFingerprint } from "../permit/fingerprint.ts";
import { type SaidPart, paragraph, small, waysRow } from "../../messages/parts.ts";
import { type ButtonSpec } from "../../messages/buttons.ts";
import { maxNews } from "../../messages/notification.ts";
import {
  Markdown,
  atTime,
  duration,
  lines,
  md,
  name,
  plain,
  plainWords,
  when,
  dayAndTime,
} from "../../messages/markdown.ts";
import { joined, maxNamed, needsInWords, numbers } from "../permit/approval-rule.ts";
import {
  type ChangeCommand,
  type Target,
  argumentsOf,
  calledName,
  isPin,
  nounOf,
  projectOf,
} from "../../registry/define.ts";
import { namedNeeds } from "../request/open-seats.ts";
import type { Approval, RequestRecord } from "../request/record.ts";
import type { StoredRequest } from "../request/stored-request.ts";
import type { Freeze } from "../request/freeze.ts";
import { askedIn, undoneBy } from "../request/origin.ts";
import { lowerFirst, upperFirst } from "../../text/letter-case.ts";
import { approvalsIn } from "../permit/votes.ts";

/**
 * Renders the facts for an approver who is about to vote. They are the same on the card, on the
 * Home tab, and in lists, and the fingerprint covers them. The loss, the change with its requester
 * and reason, and the deadline are above the buttons, so that they fit on a phone's first screen.
 * `below` follows the other facts.
 */
export function askingBlocks(
  request: StoredRequest,
  command: ChangeCommand,
  {
    pressed,
    from = md``,
    since = [],
    below = [],
  }: {
    pressed: readonly ButtonSpec[];
    from?: Markdown | undefined;
    since?: SinceRequest;
    below?: readonly Markdown[];
  },
): SaidPart[] {
  const { record } = request;
  const reason = record.reason ? md`: “${record.reason}”` : "";
  const requestWords = md`requested by ${record.requester.name}${from} at ${when(record.createdAt)}${reason}${askedWords(record)}`;
  const deed = md`${deedLine(record, command)}, ${requestWords}`;
  const risk = riskLines(request, command);
  return [
    // The risk has a section of its own. Long names that make Slack's limit cut it then take
    // nothing from the question.
    ...(risk.value === "" ? [] : [paragraph(risk)]),
    paragraph(lines(deed, sinceLine(since), askingLine(request))),
    waysRow(pressed),
    // The facts are small, so that a phone shows the whole card.
    small(lines(...factLines(request, command), ...below)),
  ];
}

/** `, as vera had asked: “it hangs”`. Empty where nobody proposed it to others. */
export function askedWords({ origin }: Pick<RequestRecord, "origin">): Markdown {
  const asked = askedIn({ origin });
  return asked ? md`, as ${asked.by} had asked: “${asked.why}”` : md``;
}

/** Known changes of the target since the request, each in a few words. */
export type SinceRequest = readonly Markdown[];

/**
 * Returns `Since the request: olivia restarted it, 11:52; ada took a snapshot of it, 11:50`.
 * Undefined when nothing happened.
 */
export function sinceLine(since: SinceRequest): Markdown | undefined {
  if (since.length === 0) return undefined;
  return md`*Since the request*: ${new Markdown(since.map(({ value }) => value).join("; "))}`;
}

function factLines({ record }: StoredRequest, command: ChangeCommand): Markdown[] {
  const lost = lossOf(record, command).value;
  const facts = (record.approval?.evidence ?? []).filter(([label]) => !isUrgent(label));
  // The VMs of a project to delete are named in the loss already.
  const more = facts.filter(([, value]) => !lost.includes(md`: ${value}`.value));
  const all: Approval["evidence"] = [...parametersOf(record, command), ...more];
  return all.map(
    ([label, value, at]) =>
      md`*${label}*: ${at === undefined ? "" : md`${dayAndTime(at)}, `}${value}`,
  );
}

/** Returns the loss, and the facts that nobody must overlook. */
function riskLines({ record }: StoredRequest, command: ChangeCommand): Markdown {
  const urgent = (record.approval?.evidence ?? []).filter(([label]) => isUrgent(label));
  return lines(lossOf(record, command), ...urgent.map(([label, text]) => md`*${label}*: ${text}`));
}

function lossOf(record: RequestRecord, command: ChangeCommand): Markdown {
  return lines(...(command.risk?.(riskedBy(record)) ?? []));
}

function riskedBy({
  target,
  input,
  children: vms = [],
  snapshotAt: since,
  createdAt,
}: RequestRecord) {
  const lost = since === undefined ? undefined : { since, forMs: Math.max(0, createdAt - since) };
  return { target, input, vms, lost };
}

/** The loss where Slack shows no time in the reader's zone: notifications and confirmations. */
function plainLossOf(record: RequestRecord, command: ChangeCommand): string {
  const risked = riskedBy(record);
  return command.plainRisk?.(risked) ?? plainWords(lossOf(record, command));
}

/** The code that gathers a fact marks an urgent one with this emoji in its label. */
const isUrgent = (label: string) => label.startsWith("🚨");

type Deed = Pick<RequestRecord, "target" | "input" | "labels"> &
  Partial<Pick<RequestRecord, "origin">>;

/**
 * Returns every argument but the target, which is in the title. None is left out, because approvals
 * cover only what was shown.
 */
export function parametersOf(
  { input, target, labels = {} }: Deed,
  command: ChangeCommand,
): [label: string, value: string][] {
  const known = new Map(argumentsOf(command).map((argument) => [argument.key, argument]));
  return Object.entries(input)
    .filter(([, given]) => [given].flat().some((value) => value !== target.id))
    .map(([key, given]) => {
      const { label = key, description } = known.get(key) ?? {};
      if (given === true) return [label, description ?? "yes"];
      const value = [given].flat().join(", ");
      const called = labels[key];
      if (called === undefined) return [label, value];
      return [label, called.endsWith(`, ${value}`) ? called : `${called} (${value})`];
    });
}

/**
 * Returns `One other person must approve: amir or ada can.` `who` is undefined when every full
 * member can, and `yes` is the number of approvals so far.
 */
export function mustApprove(required: number, who: readonly string[] | undefined, yes = 0): string {
  const left = Math.max(1, required - yes);
  const people = `${numbers[left] ?? left} ${yes > 0 ? "more" : "other"} ${left === 1 ? "person" : "people"}`;
  const can = who ? joined(who, left < who.length ? "or" : "and", maxNamed) : "every full member";
  return upperFirst(`${people} must approve: ${can} can.`);
}

export function askingLine(request: StoredRequest): Markdown {
  const { record, votes } = request;
  const { approval } = record;
  if (!approval) return md`Waiting for a decision.`;
  const yes = approvalsIn(votes);
  const voters = new Set(yes.map(({ voterId }) => voterId));
  const who = approval.who?.filter(({ id }) => !voters.has(id)).map((approver) => approver.name);
  const approvedWords =
    yes.length > 0 ? md` Approved by ${yes.map((vote) => vote.name).join(", ")}.` : md``;
  const missing = missingWords(request);
  const must = missing
    ? `${yes.length > 0 ? "Still needs" : "Needs"} ${missing}.`
    : mustApprove(approval.required, who, yes.length);
  return md`Waiting for approval until ${when(approval.expiresAt, "{time}")}. ${must}${approvedWords}`;
}

/**
 * Returns the missing approvals in words: `one of @pay-leads and one of @security`. Undefined when
 * no rule and no team says who must approve.
 */
export function missingWords(request: StoredRequest): string | undefined {
  const open = namedNeeds(request)?.open ?? [];
  return open.length > 0 ? needsInWords(open) : undefined;
}

/**
 * Returns the change in plain words: `Restore db-1 (payments) from nightly`, or `Undo the restore of
 * db-1 (payments)`.
 */
export function describeChange(deed: Deed, command: ChangeCommand): string {
  const project = projectOf(deed.target);
  const inProject = project === undefined ? "" : ` (${project})`;
  const targetWords = `${calledName(deed.target)}${inProject}`;
  return [verbOf(deed, command), targetWords, detailWords(deed, command)].filter(Boolean).join(" ");
}

/**
 * Returns the change as mrkdwn: `*Restore* db-1 in payments from nightly`, or `*Undo the restore of*
 * db-1 in payments: back to how it was at 11:56 AM`.
 */
export function deedLine(record: RequestRecord, command: ChangeCommand): Markdown {
  const { snapshotAt, createdAt } = record;
  const back =
    isUndo(record) && snapshotAt !== undefined
      ? md`: back to how it was ${atTime(snapshotAt, createdAt)}`
      : md``;
  return md`*${verbOf(record, command)}* ${targetName(record.target)}${detailOf(record, command)}${back}`;
}

export function detailOf(deed: Deed, command: ChangeCommand): Markdown {
  const detail = detailWords(deed, command);
  return detail === undefined ? md`` : md` ${detail}`;
}

/** The end of the sentence, `from nightly`. An undo names no snapshot: it is the one it goes back to. */
function detailWords(deed: Deed, { say }: ChangeCommand): string | undefined {
  return isUndo(deed) ? undefined : say.detail?.(deed.input, deed.labels ?? {});
}

const isUndo = ({ origin }: Pick<Deed, "origin">) => origin && undoneBy({ origin }) !== undefined;

/** Returns the verb: `Restore`, or `Undo the restore of` for an undo. */
export function verbOf(deed: Pick<Deed, "origin">, command: ChangeCommand): string {
  return isUndo(deed) ? `Undo the ${nounOf(command)} of` : command.say.verb;
}

export function targetName(target: Target): Markdown {
  const project = projectOf(target);
  return md`${name(calledName(target))}${project === undefined ? "" : md` in ${project}`}`;
}

/**
 * Renders the notification for people who may decide: who, what, and why, then the loss, then how
 * long they have. Only the reason, and before it the project and the detail, are shortened where a
 * phone would cut the rest (decision 216).
 */
export function askingNews({ record }: StoredRequest, command: ChangeCommand): Markdown {
  const { expiresAt = 0, evidence = [] } = record.approval ?? {};
  const { requester, target, input, createdAt } = record;
  const urgent = evidence.filter(([label]) => isUrgent(label));
  let loss = [plainLossOf(record, command), ...urgent.map(([label]) => `${label}.`)].join(" ");
  const time = `${duration(expiresAt - createdAt)} to decide.`;
  const write = (who: string, deed: string, why: string) =>
    `${who} asks to ${lowerFirst(deed)}${why === "" ? "." : `: ${quotedSentence(why)}`} ${loss} ${time}`;
  const called = calledName(target);
  const deedTo = (shownName: string) =>
    command.say.infinitive?.(shownName) ?? `${verbOf(record, command)} ${shownName}`;
  const reason = plain(record.reason ?? (isPin(command) ? input["why"] : undefined) ?? "", maxNews);
  const whole = command.say.infinitive?.(called) ?? describeChange(record, command);
  const who = requester.name;
  const all = [write(who, whole, reason), write(who, deedTo(called), reason)];
  const fitting = all.find(({ length }) => length <= maxNews);
  if (fitting !== undefined) return md`${fitting}`;
  const isLong = write(who, deedTo(called), "").length > maxNews;
  const parts = isLong
    ? ([plain(who, maxInNews), deedTo(plain(called, maxInNews))] as const)
    : ([who, deedTo(called)] as const);
  const room = maxNews - write(...parts, "").length - 4;
  if (room < 0) loss = plain(loss, Math.max(1, loss.length + room));
  const start = room < leastReason ? "" : `${reason.slice(0, room).trimEnd()}…`;
  return md`${write(...parts, start)}`;
}

/** The most of a name where names and loss together are too long for a phone. */
const maxInNews = 24;
/** A reason that would be cut to less says nothing. */
const leastReason = 12;

const quotedSentence = (text: string) => `“${text}”${/[.!?…]$/.test(text) ? "" : "."}`;

/**
 * Returns Approve and Deny. For a destructive request and for a pin, Approve asks again and names
 * the target.
 */
export function voteButtons(
  { record }: StoredRequest,
  command: ChangeCommand,
  since: SinceRequest = [],
): ButtonSpec[] {
  const { approval, id, target } = record;
  if (!approval) return [];
  const value = JSON.stringify({ request: id, digest: shortFingerprint(approval.digest) });
  const about = aboutRequest(record);
  const approve: ButtonSpec = {
    label: "Approve",
    about,
    action: "vote:approve",
    value,
    style: "primary",
  };
  const confirm = {
    title: `${verbOf(record, command)} ${calledName(target)}?`,
    text: [
      `${describeChange(record, command)}.`,
      plainLossOf(record, command),
      plainWords(sinceLine(since) ?? md``),
    ]
      .filter((words) => words !== "")
      .join(" "),
    confirm: "Approve",
    style: "danger" as const,
  };
  return [
    command.class === "destroy" || isPin(command) ? { ...approve, confirm } : approve,
    { label: "Deny", about, action: "vote:deny", value, style: "danger" },
  ];
}

/** Returns `<…|its card>`, or only the words when Slack doesn't tell the permalink. */
export function linked(link: string | undefined, words: string): Markdown {
  return link === undefined ? md`${words}` : md`<${new Markdown(link)}|${words}>`;
}

/**
 * Returns a link for the end of a line about a request. Empty when Slack doesn't tell the
 * permalink.
 */
export function openIt(link: string | undefined): Markdown {
  return link === undefined ? md`` : md` · ${linked(link, "Open its message")}`;
}

/**
 * Renders a waiting request outside its card, with everything that the card says, because people
 * vote here, too.
 */
export function askingRow(
  request: StoredRequest,
  command: ChangeCommand,
  {
    mayVote,
    link,
    since = [],
  }: { mayVote: boolean; link?: string | undefined; since?: SinceRequest },
): SaidPart[] {
  return askingBlocks(request, command, {
    pressed: [...(mayVote ? voteButtons(request, command, since) : []), whyButton(request)],
    since,
    below: [md`${fingerprintLine(request)}${openIt(link)}`],
  });
}

/** Makes a button about a request. Its value has nothing of the request but its ID. */
export function requestButton(label: string, action: string, { record }: StoredRequest) {
  const value = JSON.stringify({ request: record.id });
  return { label, about: aboutRequest(record), action, value } satisfies ButtonSpec;
}

/** What screen readers hear of a button about a request: `vm restart web-2`. */
export const aboutRequest = ({ command, target }: StoredRequest["record"]): string =>
  `${command} ${calledName(target)}`;

/** Makes the button that shows the rule of gatehouse.yml and each step of the request. */
export const whyButton = (request: StoredRequest) =>
  requestButton("Why?", "run:gatehouse.why", request);

export function fingerprintLine({ record }: StoredRequest): Markdown {
  return md`Fingerprint ${name(shortFingerprint(record.approval?.digest ?? ""))}`;
}

export const frozenWords = (freeze: Freeze | undefined): Markdown | undefined =>
  freeze &&
  md`🧊 *All changes are frozen* by ${freeze.by}${freeze.reason && `: ${freeze.reason}`}. Nothing runs until the freeze ends.`;
