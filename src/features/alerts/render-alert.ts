import type { Policy } from "../../config/policy-file.ts";
import { type Message } from "../../messages/blocks.ts";
import { paragraph, waysRow } from "../../messages/parts.ts";
import { type ButtonSpec, fitsMenu, linkButton } from "../../messages/buttons.ts";
import { list, type List, sentence, card } from "../../messages/card.ts";
import { limits } from "../../messages/limits.ts";
import {
  atTime,
  channelLink,
  counted,
  firstFew,
  dotted,
  duration,
  lines,
  Markdown,
  md,
  name,
  plainWords,
  when,
  dayAndTime,
} from "../../messages/markdown.ts";
import { askOnce, isToConfirm } from "../../core/permit/refusal.ts";
import {
  calledName,
  type ChangeCommand,
  type Command,
  dottedName,
  isChange,
  projectOf,
  type Target,
  confirmedSuffix,
} from "../../registry/define.ts";
import { hasForm } from "../../registry/invocation.ts";
import { type Fact, isTrouble, unreadIn } from "../../core/facts/fact.ts";
import { unreadLine } from "../../core/facts/facts-about.ts";
import { type LastChangeFact, isLastChange } from "../../core/facts/last-change-facts.ts";
import type { Freeze } from "../../core/request/freeze.ts";
import { describeChange, frozenWords } from "../../core/cards/asking.ts";
import { obstacleTo } from "../../core/cards/offered-change.ts";
import type { Member } from "../../core/cards/render-card.ts";
import { mentions, outcomeOf } from "../../core/cards/render-result.ts";
import type { AlertEvent } from "./alert-record.ts";
import {
  type ShownAlert,
  type StoredAlert,
  detailsOf,
  firingIn,
  isFiring,
  unknownIn,
} from "./alerts.ts";
import { sentAtOf } from "../../core/request/stored-request.ts";
import { type Advice, isRemedy } from "../alert-part.ts";
import { upperFirst } from "../../text/letter-case.ts";

export interface View {
  alert: StoredAlert;
  /**
   * The VMs by label, as far as the channel may see them, with their index in the alert. A label
   * that isn't in here is shown as plain words.
   */
  vms: ReadonlyMap<string, Vm>;
  /** Commands offered on each VM, in this order. */
  offered: readonly Command[];
  /** What to do about a VM in ERROR, where commands were refused because of that. */
  instead: string;
  /** The newest requests of its buttons. */
  presses: readonly Member[];
  frozen: Freeze | undefined;
  /** How soon after a change the group must end so that the change may have ended it (ms). */
  helpsWithinMs: number;
  policy: Pick<Policy, "confirm"> & Partial<Pick<Policy, "protect">>;
}

/**
 * `readAt`: when the compute service told the status; without it, the status is the last one that
 * Gatehouse saw.
 */
export type Vm = {
  n: number;
  target: Target;
  readAt?: number;
  /** Names of commands that the compute service refused for the VM's ERROR. */
  refused?: ReadonlySet<string>;
  /** Facts about the VM now, the most urgent first. */
  facts?: readonly Fact[];
  /** What earlier attempts to end these alerts showed. */
  advice?: readonly Advice[];
};

export const mostWithControls = 10;
const mostInWords = 20;
/** The most names in a headline, and the most summaries on a card. */
const mostNames = 3;

export const distinct = (texts: readonly string[]) => [
  ...new Set(texts.filter((text) => text !== "")),
];
export const few = (texts: readonly string[]) => firstFew(distinct(texts), mostNames);

/** A time this close to a message needs no date, because Slack shows that of the message (ms). */
const sameNightMs = 12 * 3600_000;

/** A time on the group's message, with the date unless that is the message's own. */
export function timeOn({ createdAt }: Pick<StoredAlert, "createdAt">, at: number): Markdown {
  const isNear = Math.abs(at - createdAt) < sameNightMs;
  return isNear ? when(at, "{time}") : dayAndTime(at);
}

/** The firing alerts, or all if none is known to fire, as in a group that has ended. */
export function shownOf({ record: { group } }: StoredAlert): ReturnType<typeof detailsOf> {
  const all = detailsOf(group);
  const firing = all.filter(isFiring);
  return firing.length > 0 ? firing : all;
}

export function calledOf(label: string, { vms }: Pick<View, "vms">): string {
  const known = vms.get(label);
  return known ? calledName(known.target) : label;
}

/** The headline, like `HighCpu on web-2, db-1`. It also appears on locked screens. */
export function headline(view: View): string {
  const shown = shownOf(view.alert);
  const where = few(shown.map(({ vm }) => calledOf(vm, view)));
  return `${few(shown.map((detail) => detail.name)) || "Alert"}${where === "" ? "" : ` on ${where}`}`;
}

const hasSeveralNames = (details: ReturnType<typeof shownOf>) =>
  distinct(details.map((detail) => detail.name)).length > 1;

/**
 * Distinct summaries, each after its alert's name if the message tells of several names. An alert
 * without one is named only if no other of its name has one.
 */
export function summariesOf(details: ReturnType<typeof shownOf>, isNamed: boolean): Markdown[] {
  const summarized = new Set(
    details.flatMap((detail) => (detail.summary === "" ? [] : detail.name)),
  );
  const isTold = (detail: ShownAlert) => detail.summary !== "" || !summarized.has(detail.name);
  const all = details
    .filter(isTold)
    .map(({ name: alert, summary }) => [isNamed ? alert : "", summary].filter(Boolean).join(": "));
  return distinct(all)
    .slice(0, mostNames)
    .map((text) => md`${text}`);
}

const callOf = (called: readonly string[]) => new Markdown(mentions(called));

/** Renders the message that calls people who weren't called when the first of these groups fired. */
export function renderCall(called: readonly string[], views: readonly View[]): Message {
  const headlines = md`${views.length > 1 ? `${counted(views.length, "alert group")} firing: ` : ""}${few(views.map(headline))}`;
  const severity = few(
    views.flatMap(({ alert }) => shownOf(alert).map((detail) => detail.severity)),
  );
  return sentence(md`🔥 ${callOf(called)} ${headlines}${severity && ` · ${severity}`}`);
}

/**
 * The web pages of these alerts: their runbooks, then their graphs. Where an alert has another page
 * than the others, its button says which alert it is of.
 */
export function linksOf(details: ReturnType<typeof shownOf>): ButtonSpec[] {
  const kinds = [
    ["Runbook", "runbook"],
    ["Graph", "graph"],
  ] as const;
  const isNamed = hasSeveralNames(details);
  return kinds.flatMap(([label, kind]) => {
    const pages = Map.groupBy(details, (detail) => detail[kind] ?? "");
    pages.delete("");
    return [...pages].slice(0, mostNames).map(([url, [detail]], n) => {
      const which = pages.size > 1 ? ` of ${(isNamed ? detail?.name : detail?.vm) ?? ""}` : "";
      return linkButton(`${label}${which}`, `${kind}-${n}`, url);
    });
  });
}

/**
 * Renders the card of a group, which is edited in place. It mentions the people and groups in
 * `called`: Slack notifies them of the first post, and of no edit.
 */
export function renderAlert(view: View, called: readonly string[] = []): Message {
  const { alert, vms, frozen } = view;
  const { source } = alert.record;
  const shown = shownOf(alert);
  const isOpen = alert.state === "firing";
  const [first] = shown;
  const labels = distinct(shown.map(({ vm }) => vm));
  const only = labels.length === 1 ? vms.get(labels[0] ?? "") : undefined;
  const isInRows = labels.length > 1 && labels.some((label) => vms.has(label));
  const end = endOf(view);
  const about = [
    ...(isInRows ? [] : [...summariesOf(shown, hasSeveralNames(shown)), descriptionOf(shown)]),
    timesLine(alert, shown),
    omittedLine(alert),
    unreadableLine(alert),
    missingLine(view, shown),
    silenceLine(alert),
    only && statusLine(only, view),
    unreadLine([...vms.values()].flatMap(({ facts = [] }) => unreadIn(facts))),
    callOf(called),
  ];
  const below = lines(
    ...view.presses.map((press) => pressLine(press, view)),
    isOpen && frozenWords(frozen),
  );
  const pushTitle = md`${signOf(alert)} ${end ?? `${isOpen ? "" : "Over: "}${headline(view)}`}`;
  const links = linksOf(shown);
  return card({
    title: end ? md`${signOf(alert)} ${end}` : titleLine(view, shown),
    push: md`${pushTitle}${isOpen && first?.summary ? `: ${first.summary}` : ""}`,
    lines: about,
    body: [
      // Buttons of changes are below those that only show something, because a thumb slips.
      ...(only
        ? [true, false].map((looks) => {
            const offered = view.offered.filter((command) => isChange(command) !== looks);
            return waysRow([...controlsOf({ ...view, offered }, only), ...(looks ? links : [])]);
          })
        : [rowsOf(view, labels), waysRow(links)]),
      below.value === "" ? undefined : paragraph(below),
    ],
    meta: [md`${source} · ${name(alert.id)}`],
  });
}

function titleLine(view: View, shown: ReturnType<typeof shownOf>): Markdown {
  const { alert } = view;
  const severity = few(shown.map((detail) => detail.severity));
  const [first] = shown;
  const isOne = alert.state === "firing" && countedOf(alert, shown) === "" && first;
  return dotted(
    md`${signOf(alert)} *${headline(view)}*`,
    md`${severity}`,
    isOne ? md`since ${timeOn(alert, first.since)}` : undefined,
  );
}

/** The description that the source sent with its summary. One stands for all alerts of a group. */
function descriptionOf(shown: ReturnType<typeof shownOf>): Markdown | undefined {
  const [first] = distinct(shown.map(({ description = "" }) => description));
  return first === undefined ? undefined : md`${first}`;
}

/**
 * How a group ended, in a sentence: `HighCpu on web-2 ended after 1 min; olivia had restarted it.`
 * Undefined while it fires, and when its source didn't tell its end.
 */
export function endOf(view: View): Markdown | undefined {
  const { alert } = view;
  if (signOf(alert) !== "✅") return undefined;
  const shown = shownOf(alert);
  const lastedMs = endedAtOf(alert, shown) - Math.min(...shown.map(({ since }) => since));
  const isTold = shown.length > 0 && shown.every(({ isEndTold }) => isEndTold);
  const after = isTold && lastedMs > 0 ? ` after ${duration(lastedMs)}` : "";
  return md`*${headline(view)}* ended${after}${restartedBefore(view)}.`;
}

const endedAtOf = (alert: StoredAlert, shown: ReturnType<typeof shownOf>) =>
  Math.max(0, ...shown.map((detail) => detail.endedAt ?? 0)) || alert.changedAt;

/**
 * `; olivia had restarted it`: the last press that changed a VM shortly before the VM's alerts ended
 * by their source. The time at which an end arrives says nothing.
 */
function restartedBefore({ alert, presses, vms, helpsWithinMs }: View): string {
  const all = shownOf(alert);
  const last = presses.findLast(({ request, command }) => {
    const { id } = request.record.target;
    const vmDetails = all.filter((detail) => vms.get(detail.vm)?.target.id === id);
    const ends = vmDetails.map(({ endedAt = 0, isEndTold }) => (isEndTold ? endedAt : 0));
    const [firstEnd, lastEnd] = [Math.min(...ends), Math.max(...ends)];
    const sentAt = sentAtOf(request);
    const isInTime = lastEnd - request.changedAt <= helpsWithinMs && sentAt <= firstEnd;
    // What began after the call was sent is nothing that the press could be about.
    const isAbout = vmDetails.length > 0 && vmDetails.every(({ since }) => since <= sentAt);
    return isAbout && isInTime && hasChanged({ request, command });
  });
  if (!last) return "";
  const { requester, target } = last.request.record;
  const vmWords = vms.size > 1 ? calledName(target) : "it";
  return `; ${requester.name} had ${last.command.say.done.toLowerCase()} ${vmWords}`;
}

/** Whether this request changed the VM in a way that may end its alerts. */
const hasChanged = ({ request, command }: Pick<Member, "request" | "command">): boolean =>
  request.state === "done" && !request.stage.already && isRemedy(command);

/** The sign of a group. ⚪ means that it is over but its source didn't tell its end. */
function signOf({ state, record: { group, silence } }: StoredAlert): string {
  if (state === "firing") return "🔥";
  const isTold = silence === undefined && detailsOf(group).some(({ isMissing }) => !isMissing);
  return isTold ? "✅" : "⚪";
}

/** `40 alerts`; empty for one. */
function countedOf(alert: StoredAlert, shown: ReturnType<typeof shownOf>): string {
  const { group } = alert.record;
  const many = alert.state === "firing" ? firingIn(group) - unknownIn(group) : shown.length;
  return many > 1 ? counted(many, "alert") : "";
}

/** The times of a group, unless its title has them. */
function timesLine(alert: StoredAlert, shown: ReturnType<typeof shownOf>): Markdown | undefined {
  const [first] = shown;
  if (!first) return undefined;
  const all = countedOf(alert, shown);
  const since = timeOn(alert, first.since);
  if (alert.state === "firing") {
    const isAllEnded = firingIn(alert.record.group) === unknownIn(alert.record.group);
    if (isAllEnded) return undefined;
    return all === "" ? undefined : md`${all} firing, since ${since}`;
  }
  const endedAt = timeOn(alert, endedAtOf(alert, shown));
  const isMissing = shown.every((detail) => detail.isMissing);
  const how = isMissing
    ? md`${alert.record.source} stopped reporting it ${atTime(endedAtOf(alert, shown), alert.createdAt)}`
    : md`Ended ${shown.every((detail) => detail.isEndTold) ? "" : "by "}${endedAt}`;
  return md`${how}, fired ${since}${all && `, ${all}`}`;
}

/**
 * A source with a limit on its list says how many alerts it left out, but not whether these fire.
 */
function omittedLine({ record: { group, source } }: StoredAlert): Markdown | undefined {
  if (group.omitted === 0) return undefined;
  const more = md`${group.omitted.toLocaleString("en-US")} more not listed`;
  const isAllEnded = !Object.values(group.alerts).some(isFiring);
  return isAllEnded
    ? md`Those listed have ended. ${more}: ${source} doesn't say whether they fire.`
    : md`${more} by ${source}.`;
}

/** Counts the alerts that couldn't be read, and says what was wrong with the first of them. */
function unreadableLine({ record: { group, source } }: StoredAlert): Markdown | undefined {
  const { unreadable } = group;
  if (unreadable === undefined) return undefined;
  const { count, open, why } = unreadable;
  const may = open > 0 ? ` ${open > 1 ? "They" : "It"} may fire.` : "";
  return md`⚠️ ${counted(count, "alert")} of ${source} can't be read (${why}).${may}`;
}

/**
 * Names the alerts that the source left out of a complete list without telling their end, for
 * instance because they were silenced.
 */
function missingLine(view: View, shown: ReturnType<typeof shownOf>): Markdown | undefined {
  const { record, state } = view.alert;
  const missing = detailsOf(record.group).filter((detail) => detail.isMissing);
  const isSaid = state !== "firing" && shown.every(({ isMissing }) => isMissing);
  if (missing.length === 0 || isSaid || record.silence !== undefined) return undefined;
  const names = missing.map((detail) =>
    detail.vm === "" ? detail.name : `${detail.name} on ${calledOf(detail.vm, view)}`,
  );
  return md`No longer reported: ${few(names)}.`;
}

function silenceLine(alert: StoredAlert): Markdown | undefined {
  const { group, silence, source } = alert.record;
  if (silence === undefined) return undefined;
  if (silence === "source-removed")
    return md`Nobody tells its end: ${source} is no longer a source in gatehouse.yml.`;
  const since = md`${source} last reported it ${atTime(group.told?.heardAt ?? 0, alert.createdAt)}`;
  return silence === "quiet" ? md`${since}.` : md`${since}: treated as ended.`;
}

/**
 * Who works on the alert, or how that person's request ended. While the VM's alerts fire, a change
 * that was made is no success yet, so it has no ✅. What the source told before the change says
 * nothing of now.
 */
export function pressLine(
  { request, command, note }: Member,
  { alert }: Pick<View, "alert">,
): Markdown {
  const { record, final, changedAt } = request;
  const { name: who } = record.requester;
  if (!final)
    return md`👤 ${who} is on it: ${describeChange(record, command)}, ${timeOn(alert, record.createdAt)}`;
  const { sign, text } = outcomeOf(request, command, note);
  const requesterAndTime = md`(${who}, ${timeOn(alert, changedAt)})`;
  const firing = firingOn(record.target.id, alert);
  if (!hasChanged({ request, command }) || firing.length === 0)
    return md`${sign} ${text} ${requesterAndTime}`;
  const isFine = note?.but === undefined;
  const deed = new Markdown(text.value.replace(/\.$/, ""));
  return md`${isFine ? "" : `${sign} `}${deed} ${requesterAndTime}. *${firingWords(request, firing, alert)}.*`;
}

/** Whether these alerts fire after a change as before it, as far as their source has told since. */
function firingWords(
  request: Member["request"],
  firing: readonly ShownAlert[],
  { record: { source } }: StoredAlert,
): string {
  const sentAt = sentAtOf(request);
  if (firing.every(({ since }) => since > sentAt)) return "Firing again";
  const isHeard = firing.some(({ heardAt }) => heardAt >= request.changedAt);
  return isHeard ? "Still firing" : `Still firing, as far as ${source} has told`;
}

/** The alerts of this group that fire on the VM. */
export function firingOn(vmId: string, { record: { group, vms } }: StoredAlert): ShownAlert[] {
  const labels = new Set(vms.flatMap(({ label, id }) => (id === vmId ? [label] : [])));
  return detailsOf(group).filter((detail) => isFiring(detail) && labels.has(detail.vm));
}

export function statusLine(
  vm: Vm,
  { alert, instead, presses }: Pick<View, "alert" | "instead" | "presses">,
): Markdown {
  const { refused, facts = [], advice = [] } = vm;
  const lastChange = facts.find(isLastChange);
  // The message's own requests have lines of their own.
  const isElsewhere =
    lastChange && !presses.some(({ request }) => request.record.id === lastChange.request);
  return lines(
    whereLine(vm),
    ...troublesOf(facts).map(({ sign, text }) => md`${sign} ${text}`),
    isElsewhere && lastChangeLine(lastChange, alert),
    ...advice.map(({ text, at }) =>
      at === undefined ? md`${text}.` : md`${text} (${timeOn(alert, at)}).`,
    ),
    refused && refused.size > 0 && md`${instead}`,
  );
}

const lastChangeLine = ({ deed, since }: LastChangeFact, alert: StoredAlert): Markdown =>
  md`Last change with Gatehouse: ${deed}, ${timeOn(alert, since)}.`;

/** Kinds of facts that an alert's message tells in words of its own. */
const ownKinds: readonly string[] = ["status", "alert", "remedy", "freeze"];
/** A phone shows an alert's message whole with so many. *Show* tells all. */
const mostTroubles = 3;

const troublesOf = (facts: readonly Fact[]): readonly Fact[] =>
  facts.filter((fact) => isTrouble(fact) && !ownKinds.includes(fact.kind)).slice(0, mostTroubles);

function whereLine({ target, readAt }: Vm): Markdown {
  const project = projectOf(target);
  const where = md`${name(calledName(target))}${project ? ` in ${project}` : ""}`;
  if (readAt === undefined) return md`${where} was last seen ${target.status}.`;
  return md`${where} is ${target.status} as of ${when(readAt, "{time}")}.`;
}

/** A row with a menu for each VM that is known; the other labels are named in one line. */
function rowsOf(view: View, labels: readonly string[]): List {
  const isNamed = hasSeveralNames(shownOf(view.alert));
  const controlled = labels.filter((label) => view.vms.has(label)).slice(0, mostWithControls);
  const rows = controlled.flatMap((label) => {
    const vm = view.vms.get(label);
    const details = shownOf(view.alert).filter((detail) => detail.vm === label);
    const summaries = summariesOf(details, isNamed);
    return vm ? [paragraph(lines(statusLine(vm, view), ...summaries), menuOf(view, vm))] : [];
  });
  return list(rows, {
    beyond: labels.length - controlled.length,
    rest(_left, shown) {
      const labelsShown = new Set(controlled.slice(0, shown));
      const others = labels.filter((label) => !labelsShown.has(label));
      if (labels.length < 2 || others.length === 0) return undefined;
      const names = others.map((label) => calledOf(label, view));
      return paragraph(md`${shown > 0 ? "Also on" : "On"} ${firstFew(names, mostInWords)}.`);
    },
  });
}

const verbOf = (command: Command) => {
  const verb = command.name.split(" ").at(-1) ?? "";
  return isChange(command) ? command.say.verb : upperFirst(verb);
};

/** Buttons for one VM. Their values name things by ID and never contain text of an alert. */
function controlsOf({ alert, offered, frozen, policy }: View, vm: Vm): ButtonSpec[] {
  const { n, target, refused } = vm;
  const mayChange = shownOf(alert).some(isFiring);
  const value = JSON.stringify({ alert: alert.id, vm: n, n: alert.record.requests.length });
  const { protect = [] } = policy;
  const situation = { target, refused, isFrozen: frozen !== undefined, policy: { protect } };
  return offered.flatMap((command) => {
    const isOnVm = isChange(command) && command.on === "vm";
    if (isOnVm && (!mayChange || obstacleTo(command, situation))) return [];
    const label = `${verbOf(command)}${mustAsk(command, target, policy) ? "…" : ""}`;
    const spec = {
      label,
      about: calledName(target),
      action: `alert:${dottedName(command)}`,
      value,
    };
    const button = askOnce(spec, command, target, policy);
    if (!button.confirm) return [button];
    const text = [button.confirm.text, ...knownBefore(command, vm, alert)].join(" ");
    const confirm = { ...button.confirm, text };
    return [{ ...button, confirm, action: `${spec.action}${confirmedSuffix}` }];
  });
}

/**
 * What a person should know before they confirm: the last change of the VM, and what this command
 * did before. A dialog is plain text in nobody's time zone, so a time is told by the alert's own.
 */
function knownBefore(
  command: Command,
  { facts = [], advice = [] }: Vm,
  alert: StoredAlert,
): string[] {
  const lastChange = facts.find(isLastChange);
  const words = advice.flatMap((suggestion) =>
    suggestion.command === command.name ? [`${suggestion.text}.`] : [],
  );
  if (!lastChange) return words;
  const apartMs = lastChange.since - alert.createdAt;
  const apart = `${duration(Math.abs(apartMs))} ${apartMs < 0 ? "before" : "after"} the alert came`;
  return [`Last change with Gatehouse: ${plainWords(lastChange.deed)}, ${apart}.`, ...words];
}

/**
 * A menu with the same choices, for rows without room for buttons. A menu can't ask to confirm, so
 * the press asks.
 */
export function menuOf(view: View, vm: Vm): ButtonSpec[] | undefined {
  const all = controlsOf(view, vm).map(({ label, about, action, value }) => {
    return { label, about, action: action.replace(confirmedSuffix, ""), value };
  });
  const specs = all.slice(0, limits.menu);
  return specs.length > 0 && fitsMenu(specs) ? specs : undefined;
}

/**
 * Where a press that no button confirmed must be confirmed: in the command's form, or in a message.
 * Undefined when it needn't be.
 */
export function mustAsk(command: Command, target: Target, policy: Pick<Policy, "confirm">) {
  const otherwise = command.class === "disrupt" ? "here" : undefined;
  return hasForm(command) || isToConfirm(policy, target) ? "form" : otherwise;
}

/** Asks to confirm a press of a menu. `known` says what the alert knows about this VM. */
export function renderConfirm(
  { action, value }: { action: string; value: string },
  command: ChangeCommand,
  { target, facts = [], advice = [] }: Pick<Vm, "target" | "facts" | "advice">,
  alert: StoredAlert,
): Message {
  const { verb: label } = command.say;
  const lastChange = facts.find(isLastChange);
  const text = lines(
    md`${label} ${name(calledName(target))}? What runs there is interrupted.`,
    lastChange && lastChangeLine(lastChange, alert),
    ...advice.flatMap((suggestion) =>
      suggestion.command === command.name ? [md`${suggestion.text}.`] : [],
    ),
  );
  const about = calledName(target);
  const button = {
    label,
    about,
    value,
    action: `${action}${confirmedSuffix}`,
    style: "danger",
  } as const;
  return card({ title: text, ways: [button] });
}

/**
 * Renders a message for the group's thread: everything that happened since the last one. It
 * mentions those who are `called` because the group fires again.
 */
export function renderEvents(
  events: readonly AlertEvent[],
  view: View,
  called: readonly string[] = [],
): Message {
  const isOver = events.at(-1)?.is === "ended";
  const ends = events.filter(({ is: kind }) => kind === "ended").length;
  const turns = ends - (isOver || events[0]?.is === "ended" ? 1 : 0);
  const flaps = turns > 0 ? ` It fired and ended ${counted(turns, "time")} in between.` : "";
  if (isOver) {
    const end = endOf(view) ?? md`${headline(view)} is over: its source doesn't tell its end.`;
    return sentence(md`${signOf(view.alert)} ${end}${flaps}`);
  }
  const labels = distinct(events.flatMap(({ vms }) => vms));
  const isNew = (detail: { vm: string }) => labels.length === 0 || labels.includes(detail.vm);
  const names = distinct(
    shownOf(view.alert)
      .filter(isNew)
      .map((detail) => detail.name),
  );
  const [alertNames, fire] = [few(names), names.length > 1 ? "fire" : "fires"];
  const where = firstFew(
    labels.map((label) => calledOf(label, view)),
    mostInWords,
  );
  const on = where && ` on ${where}`;
  const call = called.length > 0 && md`${callOf(called)} `;
  return sentence(
    isRestart(events)
      ? md`🔥 ${call || ""}Fires again: ${alertNames}${on}.${flaps}`
      : md`🔥 ${alertNames} ${fire}${on} too.`,
  );
}

/** Whether these events of a thread say that the group fires again. */
export const isRestart = (events: readonly AlertEvent[]): boolean =>
  events.some(({ is: kind }) => kind !== "joined");

/** Renders what replaces a card that stood in another channel while its own was closed. */
export const renderMoved = (view: View, channelId: string): Message =>
  sentence(md`➡️ ${headline(view)}: told in ${channelLink(channelId)} from now on.`);
