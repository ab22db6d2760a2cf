import type { KnownBlock } from "@slack/types";
import { shortFingerprint } from "../../approvals/fingerprint.ts";
import {
  type ButtonSpec,
  buttons,
  section,
  lines,
  Markdown,
  md,
  name,
  plainWords,
  when,
} from "../../messages/message.ts";
import { argumentsOf, type ChangeCommand, calledName } from "../../registry/define.ts";
import { joined, needsInWords } from "../../policy/approval-rule.ts";
import { namedNeeds } from "../journal/limits.ts";
import type { RequestRecord, StoredRequest } from "../journal/record.ts";

/** What an approver reads before a vote: the same on the card, on the Home tab, and in lists. The fingerprint covers it. */
export function factLines({ record }: StoredRequest, command: ChangeCommand): Markdown[] {
  const facts = (record.approval?.evidence ?? []).filter(([label]) => !isUrgent(label));
  return [...parametersOf(record, command), ...facts].map(
    ([label, value]) => md`*${label}*: ${value}`,
  );
}

/** What would happen, above the buttons: the loss, and facts that can't be overlooked. */
export function riskLines({ record }: StoredRequest, command: ChangeCommand): Markdown {
  const { target, input, children = [], approval } = record;
  const urgent = (approval?.evidence ?? []).filter(([label]) => isUrgent(label));
  return lines(
    ...(command.risk?.({ target, input, vms: children }) ?? []),
    ...urgent.map(([label, text]) => md`*${label}*: ${text}`),
  );
}

/** An emoji marks it where it was gathered. */
const isUrgent = (label: string) => label.startsWith("🚨");

/** Every argument but the target, which is in the title: approvals cover only what was shown. */
export function parametersOf(
  { input, target, labels = {} }: Pick<RequestRecord, "input" | "target" | "labels">,
  command: ChangeCommand,
): [label: string, value: string][] {
  const known = new Map(argumentsOf(command).map((argument) => [argument.key, argument]));
  return Object.entries(input)
    .filter(([, given]) => [given].flat().some((one) => one !== target.id))
    .map(([key, given]) => {
      const { label = key, description } = known.get(key) ?? {};
      if (given === true) return [label, description ?? "yes"];
      const value = [given].flat().join(", ");
      const called = labels[key] ?? value;
      return [label, called.endsWith(`, ${value})`) ? called : `${called} (${value})`];
    });
}

/** `One other person must approve: amir or ada can.` */
export function mustApprove(required: number, who: readonly string[] | undefined, yes = 0): string {
  const left = Math.max(1, required - yes);
  const other = yes > 0 ? "more" : "other";
  const people = left === 1 ? `One ${other} person` : `${capital(left)} ${other} people`;
  const can = who === undefined ? "every full member can" : `${listed(who, left < who.length)} can`;
  return `${people} must approve: ${can}.`;
}

const numbers = ["Zero", "One", "Two", "Three", "Four", "Five"];
const capital = (number: number) => numbers[number] ?? String(number);

const maxNamed = 4;

/** `amir, ada, or bea`, where some of them are enough, else `amir and ada`; of many the first few. */
function listed(names: readonly string[], isAny: boolean): string {
  const link = isAny ? "or" : "and";
  const shown = names.length > maxNamed ? names.slice(0, maxNamed - 1) : names;
  const more = names.length - shown.length;
  return joined(more > 0 ? [...shown, `${more} others`] : shown, link);
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
export function deedOf(
  record: Pick<RequestRecord, "target" | "input" | "labels">,
  command: ChangeCommand,
): string {
  const { target, input, labels = {} } = record;
  const inProject =
    target.kind === "vm" && target.projectName && !target.sharesName
      ? ` (${target.projectName})`
      : "";
  const detail = command.say.detail?.(input, labels);
  const what = `${calledName(target)}${inProject}`;
  return [command.say.verb, what, detail].filter(Boolean).join(" ");
}

/** For the notification of those who may decide. */
export function askingNews({ record }: StoredRequest, command: ChangeCommand): Markdown {
  const deed = deedOf(record, command);
  const why = record.reason ? `: “${record.reason}”` : "";
  return md`${record.requester.name} asks you to approve: ${deed.slice(0, 1).toLowerCase()}${deed.slice(1)}${why}`;
}

/** Approve and Deny. For a destructive request, Approve confirms the target by name. */
export function voteButtons({ record }: StoredRequest, command: ChangeCommand): ButtonSpec[] {
  const { approval, id, target } = record;
  if (!approval) return [];
  const value = JSON.stringify({ request: id, digest: shortFingerprint(approval.digest) });
  const approve: ButtonSpec = { label: "Approve", action: "vote:approve", value, style: "primary" };
  const risk = command.risk?.({ target, input: record.input, vms: record.children ?? [] }) ?? [];
  const confirm = {
    title: `${command.say.verb} ${calledName(target)}?`,
    text: `${deedOf(record, command)}. ${risk.map(plainWords).join(" ")}`,
    confirm: "Approve",
    style: "danger" as const,
  };
  return [
    command.class === "destroy" ? { ...approve, confirm } : approve,
    { label: "Deny", action: "vote:deny", value, style: "danger" },
  ];
}

/** A request that waits, outside its card, with all that the card says: a vote counts from here too. */
export function askingRow(
  request: StoredRequest,
  command: ChangeCommand,
  { mayVote, link }: { mayVote: boolean; link?: string | undefined },
): KnownBlock[] {
  const { record } = request;
  const reason = record.reason ? md`: “${record.reason}”` : "";
  const card = link === undefined ? "" : md` · <${new Markdown(link)}|Open its message>`;
  const said = lines(
    md`${mayVote ? "👉 " : ""}*${deedOf(record, command)}*, requested by ${record.requester.name}${reason}`,
    riskLines(request, command),
    ...factLines(request, command),
    askingLine(request),
    md`${fingerprintLine(request)}${card}`,
  );
  return [
    section(said),
    ...buttons([...(mayVote ? voteButtons(request, command) : []), whyButton(request)]),
  ];
}

/** The rule of gatehouse.yml, and each step. */
export function whyButton({ record }: StoredRequest): ButtonSpec {
  const value = JSON.stringify({ request: record.id });
  return { label: "Why?", action: "run:gatehouse.why", value };
}

export function fingerprintLine({ record }: StoredRequest): Markdown {
  return md`Fingerprint ${name(shortFingerprint(record.approval?.digest ?? ""))}`;
}
