import type { KnownBlock } from "@slack/types";
import { shortFingerprint } from "../permit/fingerprint.ts";
import { capital } from "../../attestation/render-attestation.ts";
import {
  type ButtonSpec,
  Markdown,
  buttons,
  context,
  lines,
  md,
  name,
  plainWords,
  section,
  utc,
  when,
} from "../../messages/message.ts";
import { joined, maxNamed, needsInWords, numbers } from "../permit/approval-rule.ts";
import {
  type ChangeCommand,
  type Target,
  argumentsOf,
  calledName,
  isPin,
  projectOf,
} from "../../registry/define.ts";
import { namedNeeds } from "../request/open-seats.ts";
import type { Approval, RequestRecord } from "../request/record.ts";
import type { StoredRequest } from "../request/stored-request.ts";
import type { Freeze } from "../request/freeze.ts";
import { undoneBy } from "../request/origin.ts";

/**
 * What an approver reads before a vote, the same on the card, on the Home tab, and in lists; the fingerprint covers it. What is
 * lost, who asks for what and why, and until when fit on a phone's first screen, above the buttons; `below` follows the facts.
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
): KnownBlock[] {
  const { record } = request;
  const reason = record.reason ? md`: “${record.reason}”` : "";
  const by = md`requested by ${record.requester.name}${from} at ${when(record.createdAt)}${reason}`;
  const deed = md`${deedLine(record, command)}, ${by}`;
  const risk = riskLines(request, command);
  return [
    // Apart: names so long that Slack's limit cuts them take nothing from what is asked
    ...(risk.value === "" ? [] : [section(risk)]),
    section(lines(deed, sinceLine(since), askingLine(request))),
    ...buttons(pressed),
    // Small, so that a phone shows the whole card
    context(lines(...factLines(request, command), ...below)),
  ];
}

/** What is known to have happened to its target while it waited, each in a few words. */
export type SinceRequest = readonly Markdown[];

/** `Since the request: olivia restarted it, 11:52; ada took a snapshot of it, 11:50`, or nothing. */
export function sinceLine(since: SinceRequest): Markdown | undefined {
  if (since.length === 0) return undefined;
  return md`*Since the request*: ${new Markdown(since.map(({ value }) => value).join("; "))}`;
}

function factLines({ record }: StoredRequest, command: ChangeCommand): Markdown[] {
  const lost = lossOf(record, command).value;
  const facts = (record.approval?.evidence ?? []).filter(([label]) => !isUrgent(label));
  // The VMs of a project to delete are in the loss
  const more = facts.filter(([, value]) => !lost.includes(md`: ${value}`.value));
  const all: Approval["evidence"] = [...parametersOf(record, command), ...more];
  return all.map(
    ([label, value, at]) =>
      md`*${label}*: ${at === undefined ? "" : md`${when(at, "{date_short_pretty} {time}", utc(at))}, `}${value}`,
  );
}

/** What would happen: the loss, and facts that can't be overlooked. */
function riskLines({ record }: StoredRequest, command: ChangeCommand): Markdown {
  const urgent = (record.approval?.evidence ?? []).filter(([label]) => isUrgent(label));
  return lines(lossOf(record, command), ...urgent.map(([label, text]) => md`*${label}*: ${text}`));
}

function lossOf(
  { target, input, children: vms = [], snapshotAt: since, createdAt }: RequestRecord,
  command: ChangeCommand,
): Markdown {
  const lost = since === undefined ? undefined : { since, forMs: Math.max(0, createdAt - since) };
  return lines(...(command.risk?.({ target, input, vms, lost }) ?? []));
}

/** An emoji marks it where it was gathered. */
const isUrgent = (label: string) => label.startsWith("🚨");

type Deed = Pick<RequestRecord, "target" | "input" | "labels">;

/** Every argument but the target, which is in the title: approvals cover only what was shown. */
export function parametersOf(
  { input, target, labels = {} }: Deed,
  command: ChangeCommand,
): [label: string, value: string][] {
  const known = new Map(argumentsOf(command).map((argument) => [argument.key, argument]));
  return Object.entries(input)
    .filter(([, given]) => [given].flat().some((one) => one !== target.id))
    .map(([key, given]) => {
      const { label = key, description } = known.get(key) ?? {};
      if (given === true) return [label, description ?? "yes"];
      const value = [given].flat().join(", ");
      const called = labels[key];
      if (called === undefined) return [label, value];
      return [label, called.endsWith(`, ${value})`) ? called : `${called} (${value})`];
    });
}

/** `One other person must approve: amir or ada can.` */
export function mustApprove(required: number, who: readonly string[] | undefined, yes = 0): string {
  const left = Math.max(1, required - yes);
  const people = `${numbers[left] ?? left} ${yes > 0 ? "more" : "other"} ${left === 1 ? "person" : "people"}`;
  const can = who ? joined(who, left < who.length ? "or" : "and", maxNamed) : "every full member";
  return capital(`${people} must approve: ${can} can.`);
}

export function askingLine(request: StoredRequest): Markdown {
  const { record, votes } = request;
  const { approval } = record;
  if (!approval) return md`Waiting for a decision.`;
  const yes = votes.filter(({ vote }) => vote === "approve");
  const voters = new Set(yes.map(({ voterId }) => voterId));
  const who = approval.who?.filter(({ id }) => !voters.has(id)).map((one) => one.name);
  const said = yes.length > 0 ? md` Approved by ${yes.map((vote) => vote.name).join(", ")}.` : md``;
  const missing = missingWords(request);
  const must = missing
    ? `${yes.length > 0 ? "Still needs" : "Needs"} ${missing}.`
    : mustApprove(approval.required, who, yes.length);
  return md`Waiting for approval until ${when(approval.expiresAt, "{time}")}. ${must}${said}`;
}

/** `one of @pay-leads and one of @security`: whose approval is missing, where a rule or a team names whose. */
export function missingWords(request: StoredRequest): string | undefined {
  const open = namedNeeds(request)?.open ?? [];
  return open.length > 0 ? needsInWords(open) : undefined;
}

/** `Restore db-1 (payments) from nightly`, as plain words. */
export function deedOf({ target, input, labels = {} }: Deed, command: ChangeCommand): string {
  const project = projectOf(target);
  const inProject = project === undefined ? "" : ` (${project})`;
  const detail = command.say.detail?.(input, labels);
  const what = `${calledName(target)}${inProject}`;
  return [command.say.verb, what, detail].filter(Boolean).join(" ");
}

/** `*Restore* db-1 in payments from nightly` */
export function deedLine(record: RequestRecord, command: ChangeCommand): Markdown {
  return md`*${verbOf(record, command)}* ${targetName(record.target)}${detailOf(record, command)}`;
}

export function detailOf({ input, labels = {} }: Deed, { say }: ChangeCommand): Markdown {
  const detail = say.detail?.(input, labels);
  return detail === undefined ? md`` : md` ${detail}`;
}

/** `Restore`, or that it is an undo. */
export function verbOf(record: Pick<RequestRecord, "origin">, { say }: ChangeCommand): string {
  return undoneBy(record) === undefined ? say.verb : `Undo: ${say.verb}`;
}

export function targetName(target: Target): Markdown {
  const project = projectOf(target);
  return md`${name(calledName(target))}${project === undefined ? "" : md` in ${project}`}`;
}

/** For the notification of those who may decide: until when, and what is lost, before it is cut. */
export function askingNews(request: StoredRequest, command: ChangeCommand): Markdown {
  const { record } = request;
  const { expiresAt = 0 } = record.approval ?? {};
  const until = `${new Date(expiresAt).toISOString().slice(11, 16)} UTC`;
  const deed = deedOf(record, command);
  const why = record.reason ? `: “${record.reason}”` : "";
  const asked = md`${record.requester.name} asks to ${deed.slice(0, 1).toLowerCase()}${deed.slice(1)}${why}`;
  return md`Approve by ${until}? ${riskLines(request, command)} ${asked}`;
}

/** Approve and Deny. For a destructive request and for a pin, Approve confirms the target by name. */
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
    title: `${command.say.verb} ${calledName(target)}?`,
    text: [
      `${deedOf(record, command)}.`,
      plainWords(lossOf(record, command)),
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

/** `<…|its card>`, or only the words where Slack doesn't tell the permalink. */
export function linked(link: string | undefined, words: string): Markdown {
  return link === undefined ? md`${words}` : md`<${new Markdown(link)}|${words}>`;
}

/** Ends a line about a request. */
export function openIt(link: string | undefined): Markdown {
  return link === undefined ? md`` : md` · ${linked(link, "Open its message")}`;
}

/** A request that waits, outside its card, with all that the card says: a vote counts from here too. */
export function askingRow(
  request: StoredRequest,
  command: ChangeCommand,
  {
    mayVote,
    link,
    since = [],
  }: { mayVote: boolean; link?: string | undefined; since?: SinceRequest },
): KnownBlock[] {
  return askingBlocks(request, command, {
    pressed: [...(mayVote ? voteButtons(request, command, since) : []), whyButton(request)],
    since,
    below: [md`${fingerprintLine(request)}${openIt(link)}`],
  });
}

/** A button about a request, which says no more of it than its ID. */
export function requestButton(label: string, action: string, { record }: StoredRequest) {
  const value = JSON.stringify({ request: record.id });
  return { label, about: aboutRequest(record), action, value } satisfies ButtonSpec;
}

/** What screen readers hear of a button about a request: `vm restart web-2`. */
export const aboutRequest = ({ command, target }: StoredRequest["record"]): string =>
  `${command} ${calledName(target)}`;

/** The rule of gatehouse.yml, and each step. */
export const whyButton = (request: StoredRequest) =>
  requestButton("Why?", "run:gatehouse.why", request);

export function fingerprintLine({ record }: StoredRequest): Markdown {
  return md`Fingerprint ${name(shortFingerprint(record.approval?.digest ?? ""))}`;
}

export const frozenWords = (freeze: Freeze | undefined): Markdown | undefined =>
  freeze &&
  md`🧊 *All changes are frozen* by ${freeze.by}${freeze.reason && `: ${freeze.reason}`}. Nothing runs until the freeze ends.`;
