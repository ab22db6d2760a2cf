import type { Policy } from "../../config/policy-file.ts";
import {
  buttons,
  type ButtonSpec,
  channelLink,
  context,
  counted,
  firstFew,
  fitsMenu,
  limits,
  lines,
  list,
  type List,
  type Markdown,
  md,
  message,
  type Message,
  name,
  news,
  notice,
  section,
  sentence,
  when,
} from "../../messages/message.ts";
import { askOnce, isToConfirm } from "../../core/permit/refusal.ts";
import {
  calledName,
  type ChangeCommand,
  type Command,
  dottedName,
  isChange,
  projectOf,
  type Target,
  asked,
} from "../../registry/define.ts";
import { hasForm } from "../../registry/invocation.ts";
import type { Freeze } from "../../core/request/freeze.ts";
import { deedOf, frozenWords } from "../../core/cards/asking.ts";
import type { Member } from "../../core/cards/render-card.ts";
import { outcomeOf } from "../../core/cards/render-result.ts";
import { type AlertEvent, detailsOf, firingIn, isFiring, type StoredAlert } from "./alerts.ts";
import { isProtected } from "../../core/permit/permit.ts";

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
  policy: Pick<Policy, "confirm"> & Partial<Pick<Policy, "protect">>;
}

/**
 * `readAt`: when the compute service told the status; without it, the status is the last one that
 * Gatehouse saw.
 */
type Vm = {
  n: number;
  target: Target;
  readAt?: number;
  /** Names of commands that the compute service refused for the VM's ERROR (`refusedInError`). */
  refused?: ReadonlySet<string>;
};

export const mostWithControls = 10;
const mostInWords = 20;
/** The most names in a headline, and the most summaries on a card. */
const mostNames = 3;

const distinct = (texts: readonly string[]) => [...new Set(texts.filter((text) => text !== ""))];
const few = (texts: readonly string[]) => firstFew(distinct(texts), mostNames);
const atTime = (at: number) => when(at, "{date_short_pretty} {time}");

/** The firing alerts, or all if none is known to fire, as in a group that has ended. */
function shownOf({ record: { group } }: StoredAlert): ReturnType<typeof detailsOf> {
  const all = detailsOf(group);
  const firing = all.filter(isFiring);
  return firing.length > 0 ? firing : all;
}

function calledOf(label: string, { vms }: Pick<View, "vms">): string {
  const known = vms.get(label);
  return known ? calledName(known.target) : label;
}

/** The headline, like `HighCpu on web-2, db-1`. It also appears on locked screens. */
function headline(view: View): string {
  const shown = shownOf(view.alert);
  const where = few(shown.map(({ vm }) => calledOf(vm, view)));
  return `${few(shown.map((one) => one.name)) || "Alert"}${where === "" ? "" : ` on ${where}`}`;
}

/** Distinct summaries, each after its alert's name if there are several alerts. */
function summariesOf(details: ReturnType<typeof shownOf>, isNamed: boolean): Markdown[] {
  const all = details.map(({ name: alert, summary }) =>
    [isNamed ? alert : "", summary].filter(Boolean).join(": "),
  );
  return distinct(all)
    .slice(0, mostNames)
    .map((text) => md`${text}`);
}

/** Renders the card of a group, which is edited in place and mentions nobody. */
export function renderAlert(view: View): Message {
  const { alert, vms, frozen } = view;
  const { source, group } = alert.record;
  const shown = shownOf(alert);
  const isOpen = alert.state === "firing";
  const [first] = shown;
  const many = isOpen ? firingIn(group) - group.omitted : shown.length;
  const all = many > 1 ? counted(many, "alert") : "";
  const labels = distinct(shown.map(({ vm }) => vm));
  const only = labels.length === 1 ? vms.get(labels[0] ?? "") : undefined;
  const isInRows = labels.length > 1 && labels.some((label) => vms.has(label));
  const severity = few(shown.map((one) => one.severity));
  const head = lines(
    md`${signOf(alert)} *${headline(view)}*${severity && ` · ${severity}`}`,
    ...(isInRows ? [] : summariesOf(shown, many > 1)),
    many > 0 ? timesLine(alert, shown, all) : undefined,
    omittedLine(alert),
    missingLine(view, shown),
    silenceLine(alert),
    only && statusLine(only, view),
  );
  const below = lines(...view.presses.map(pressLine), isOpen && frozenWords(frozen));
  const told = `${signOf(alert)} ${isOpen ? "" : "Ended: "}${headline(view)}`;
  return message(
    news(md`${told}${isOpen && first?.summary ? `: ${first.summary}` : ""}`),
    section(head),
    // Buttons of changes are below those of reads, because a thumb slips.
    ...(only
      ? [true, false].map((looks) => {
          const offered = view.offered.filter((command) => isChange(command) !== looks);
          return buttons(controlsOf({ ...view, offered }, only));
        })
      : [rowsOf(view, labels)]),
    below.value === "" ? undefined : section(below),
    context(md`${source} · ${name(alert.id)}`),
  );
}

/** The sign of a group. ⚪ means that it is over but its source didn't tell its end. */
function signOf({ state, record: { group, silence } }: StoredAlert): string {
  if (state === "firing") return "🔥";
  const isTold = silence === undefined && detailsOf(group).some(({ isMissing }) => !isMissing);
  return isTold ? "✅" : "⚪";
}

function timesLine(alert: StoredAlert, shown: ReturnType<typeof shownOf>, all: string): Markdown {
  const [first] = shown;
  const since = first ? atTime(first.since) : md``;
  if (alert.state === "firing")
    return md`${all === "" ? "Firing" : `${all} firing,`} since ${since}`;
  const endedAt = Math.max(...shown.map((one) => one.endedAt ?? 0)) || alert.changedAt;
  const how = shown.every(({ isMissing }) => isMissing) ? "No longer reported since" : "Ended";
  return md`${how} ${atTime(endedAt)}, fired ${since}${all && `, ${all}`}`;
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

/**
 * Names the alerts that the source left out of a complete list without telling their end, for
 * instance because they were silenced.
 */
function missingLine(view: View, shown: ReturnType<typeof shownOf>): Markdown | undefined {
  const { record, state } = view.alert;
  const missing = detailsOf(record.group).filter((one) => one.isMissing);
  const isSaid = state !== "firing" && shown.every(({ isMissing }) => isMissing);
  if (missing.length === 0 || isSaid || record.silence !== undefined) return undefined;
  const names = missing.map((one) =>
    one.vm === "" ? one.name : `${one.name} on ${calledOf(one.vm, view)}`,
  );
  return md`No longer reported: ${few(names)}.`;
}

function silenceLine({ record: { group, silence, source } }: StoredAlert): Markdown | undefined {
  if (silence === undefined) return undefined;
  if (silence === "source-removed")
    return md`Nobody tells its end: ${source} is no longer a source in gatehouse.yml.`;
  const since = md`Not heard of since ${atTime(group.told?.heardAt ?? 0)}`;
  return silence === "quiet" ? md`${since}.` : md`${since}: taken as over.`;
}

/** Who works on the alert, or how that person's request ended. */
function pressLine({ request, command, note }: Member): Markdown {
  const { record, final, changedAt } = request;
  const { name: who } = record.requester;
  if (!final)
    return md`👤 ${who} is on it: ${deedOf(record, command)}, ${atTime(record.createdAt)}`;
  const { sign, text } = outcomeOf(request, command, note);
  return md`${sign} ${text} (${who}, ${atTime(changedAt)})`;
}

function statusLine(vm: Vm, { instead }: Pick<View, "instead">): Markdown {
  const { refused } = vm;
  return lines(whereLine(vm), refused && refused.size > 0 && md`${instead}`);
}

function whereLine({ target, readAt }: Vm): Markdown {
  const project = projectOf(target);
  const where = md`${name(calledName(target))}${project ? ` in ${project}` : ""}`;
  if (readAt === undefined) return md`${where} was last seen ${target.status}.`;
  return md`${where} is ${target.status} as of ${when(readAt, "{time}")}.`;
}

/** A row with a menu for each VM that is known; the other labels are named in one line. */
function rowsOf(view: View, labels: readonly string[]): List {
  const controlled = labels.filter((label) => view.vms.has(label)).slice(0, mostWithControls);
  const rows = controlled.flatMap((label) => {
    const vm = view.vms.get(label);
    const theirs = shownOf(view.alert).filter((detail) => detail.vm === label);
    const what = summariesOf(theirs, true);
    return vm ? [section(lines(statusLine(vm, view), ...what), menuOf(view, vm))] : [];
  });
  return list(rows, {
    beyond: labels.length - controlled.length,
    rest(_left, shown) {
      const told = new Set(controlled.slice(0, shown));
      const others = labels.filter((label) => !told.has(label));
      if (labels.length < 2 || others.length === 0) return undefined;
      const names = others.map((label) => calledOf(label, view));
      return section(md`${shown > 0 ? "Also on" : "On"} ${firstFew(names, mostInWords)}.`);
    },
  });
}

const verbOf = (command: Command) => {
  const verb = command.name.split(" ").at(-1) ?? "";
  return isChange(command) ? command.say.verb : `${verb.slice(0, 1).toUpperCase()}${verb.slice(1)}`;
};

/** Buttons for one VM. Their values name things by ID and never contain text of an alert. */
function controlsOf(
  { alert, offered, frozen, policy }: View,
  { n, target, refused }: Vm,
): ButtonSpec[] {
  const mayChange = shownOf(alert).some(isFiring) && !frozen;
  const value = JSON.stringify({ alert: alert.id, vm: n, n: alert.record.requests.length });
  return offered.flatMap((command) => {
    const { offeredIn = [target.status] } = isChange(command) && command.on === "vm" ? command : {};
    if (isChange(command) && !(mayChange && offeredIn.includes(target.status))) return [];
    if (refused?.has(command.name)) return [];
    const { protect = [] } = policy;
    if (isChange(command) && isProtected({ command, targets: [target] }, { protect })) return [];
    const label = `${verbOf(command)}${mustAsk(command, target, policy) ? "…" : ""}`;
    const spec = {
      label,
      about: calledName(target),
      action: `alert:${dottedName(command)}`,
      value,
    };
    const button = askOnce(spec, command, target, policy);
    return [button.confirm ? { ...button, action: `${spec.action}${asked}` } : button];
  });
}

/**
 * A menu with the same choices, for rows without room for buttons. A menu can't ask to confirm, so
 * the press asks.
 */
function menuOf(view: View, vm: Vm): ButtonSpec[] | undefined {
  const all = controlsOf(view, vm).map(({ label, about, action, value }) => {
    return { label, about, action: action.replace(asked, ""), value };
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

export function renderConfirm(
  { action, value }: { action: string; value: string },
  command: ChangeCommand,
  target: Target,
): Message {
  const { verb: label } = command.say;
  const text = md`${label} ${name(calledName(target))}? What runs there is interrupted.`;
  return sentence(
    text,
    buttons([
      {
        label,
        about: calledName(target),
        value,
        action: `${action}${asked}`,
        style: "danger",
      },
    ]),
  );
}

/** Renders a message for the group's thread: everything that happened since the last one. */
export function renderEvents(events: readonly AlertEvent[], view: View): Message {
  const isOver = events.at(-1)?.is === "ended";
  const ends = events.filter(({ is }) => is === "ended").length;
  const turns = ends - (isOver || events[0]?.is === "ended" ? 1 : 0);
  const flaps = turns > 0 ? ` It fired and ended ${counted(turns, "time")} in between.` : "";
  if (isOver) {
    const way = view.alert.record.silence === undefined ? ". Nothing fires any more." : ".";
    return notice(md`${signOf(view.alert)} Ended: ${headline(view)}${way}${flaps}`);
  }
  const labels = distinct(events.flatMap(({ vms }) => vms));
  const isNew = (one: { vm: string }) => labels.length === 0 || labels.includes(one.vm);
  const names = distinct(
    shownOf(view.alert)
      .filter(isNew)
      .map((one) => one.name),
  );
  const [what, fire] = [few(names), names.length > 1 ? "fire" : "fires"];
  const where = firstFew(
    labels.map((label) => calledOf(label, view)),
    mostInWords,
  );
  const on = where && ` on ${where}`;
  const isAgain = events.some(({ is }) => is !== "joined");
  return notice(
    isAgain ? md`🔥 Fires again: ${what}${on}.${flaps}` : md`🔥 ${what} ${fire}${on} too.`,
  );
}

/** Renders what replaces a card that stood in another channel while its own was closed. */
export const renderMoved = (view: View, channelId: string): Message =>
  notice(md`➡️ ${headline(view)}: told in ${channelLink(channelId)} from now on.`);

/**
 * Renders one message for groups that came faster than a channel takes messages: the first by name,
 * the rest counted.
 */
export function renderOverview(views: readonly View[], firing: number, ended: number): Message {
  const groups = counted(firing, "alert group");
  const [top] = views;
  if (!top) return notice(md`✅ All ${counted(ended, "alert group")} of this message have ended.`);
  const rows = views.map((view, n) => {
    const [vm, ...others] = view.vms.values();
    const [first] = shownOf(view.alert);
    const only = vm && others.length === 0 ? vm : undefined;
    const text = lines(
      md`🔥 *${headline(view)}*${first ? md`, since ${atTime(first.since)}` : ""}`,
      only && statusLine(only, view),
      ...view.presses.map(pressLine),
    );
    return section(text, only && n < mostWithControls ? menuOf(view, only) : undefined);
  });
  const over = ended > 0 ? `, ${ended.toLocaleString("en-US")} ended` : "";
  const all = md`🔥 *${groups} firing*${over}. They came faster than this channel takes messages, so they share this one.`;
  return message(
    news(md`🔥 ${groups} firing: ${headline(top)}`),
    section(lines(all, frozenWords(top.frozen))),
    list(rows, {
      beyond: firing - rows.length,
      rest: (left) => md`… and ${left.toLocaleString("en-US")} more firing.`,
    }),
  );
}
