import type { Policy } from "../config/policy-file.ts";
import {
  buttons,
  type ButtonSpec,
  context,
  counted,
  firstFew,
  fitsMenu,
  lines,
  type Markdown,
  md,
  message,
  type Message,
  name,
  news,
  notice,
  section,
  when,
} from "../messages/message.ts";
import { askOnce, isToConfirm } from "../policy/refusal.ts";
import {
  calledName,
  type Command,
  dottedName,
  isChange,
  projectOf,
  type Target,
} from "../registry/define.ts";
import { hasForm } from "../registry/invocation.ts";
import { type AlertEvent, detailsOf, firingIn, isFiring, type StoredAlert } from "./alerts.ts";
import type { Detail } from "./read-alerts.ts";

/** A VM as its channel may know it: as it is now. `n`: its place in the list of the alert. */
export interface ShownVm {
  n: number;
  target: Target;
}

export interface View {
  alert: StoredAlert;
  /** By label. What isn't here is words, and nothing more is said of it. */
  vms: ReadonlyMap<string, ShownVm>;
  /** Offered on each VM, in this order. */
  offered: readonly Command[];
  /** Who froze all changes. */
  frozenBy: string | undefined;
  policy: Pick<Policy, "confirm">;
}

/** With controls. Others are words. */
const mostWithControls = 10;
const mostInWords = 20;
const mostNames = 3;

const distinct = (texts: readonly string[]) => [...new Set(texts.filter((text) => text !== ""))];

/** Those that fire; of a group that has ended, all. */
function shownOf({ group, state }: StoredAlert): ReturnType<typeof detailsOf> {
  const all = detailsOf(group);
  return state === "firing" ? all.filter(isFiring) : all;
}

/** `HighCpu on web-2 and db-1`, for a locked screen too. */
function headline({ alert, vms }: Pick<View, "alert" | "vms">): string {
  const shown = shownOf(alert);
  const what = firstFew(distinct(shown.map((one) => one.name)), mostNames) || "Alert";
  const where = distinct(shown.map(({ vm }) => calledOf(vm, vms)));
  return where.length > 0 ? `${what} on ${firstFew(where, mostNames)}` : what;
}

function calledOf(label: string, vms: View["vms"]): string {
  const known = vms.get(label);
  return known ? calledName(known.target) : label;
}

/** The one message of a group, edited in place, without mentions. */
export function renderAlert(view: View): Message {
  const { alert, vms, frozenBy } = view;
  const { state, group, presses, source, id, changedAt } = alert;
  const shown = shownOf(alert);
  const isOpen = state === "firing";
  const sign = isOpen ? "🔥" : "✅";
  const [first] = shown;
  const summaries = distinct(shown.map(({ summary }) => summary));
  const severities = distinct(shown.map(({ severity }) => severity));
  const many = isOpen ? firingIn(group) : shown.length;
  const since = first && md`${isOpen ? "since" : "fired"} ${atTime(first.since)}`;
  const times = isOpen
    ? md`${many > 1 ? `${counted(many, "alert")} firing, ` : "Firing "}${since}`
    : md`Ended ${atTime(changedAt)}${many > 1 ? `, ${counted(many, "alert")}` : ""}`;
  const labels = distinct(shown.map(({ vm }) => vm));
  const known = labels.filter((label) => vms.has(label));
  const [one] = known.flatMap((label) => vms.get(label) ?? []);
  const head = lines(
    md`${sign} *${headline(view)}*${severities.length > 0 ? ` · ${firstFew(severities, 2)}` : ""}`,
    summaries.length === 1 && md`${summaries[0]}`,
    times,
    labels.length === 1 && one && statusLine(one.target),
  );
  const pressed = presses.map(
    (press) => md`👤 ${press.by} is on it: ${press.did}, ${atTime(press.at)}`,
  );
  const text = `${sign} ${isOpen ? "" : "Ended: "}${headline(view)}${isOpen && first?.summary ? `: ${first.summary}` : ""}`;
  return message(
    news(md`${text}`),
    section(head),
    ...(labels.length === 1 && one
      ? [buttons(controlsOf(view, one).map((spec) => spec))]
      : rowsOf(view, shown, labels, known)),
    pressed.length > 0 ? section(lines(...pressed)) : undefined,
    isOpen && frozenBy !== undefined
      ? section(md`🧊 *All changes are frozen* by ${frozenBy}, so only reads are offered.`)
      : undefined,
    context(md`${source} · ${name(id)}`),
  );
}

const atTime = (at: number) => when(at, "{date_short_pretty} {time}");

function statusLine(target: Target): Markdown {
  const project = projectOf(target);
  return md`${name(calledName(target))}${project === undefined ? "" : ` in ${project}`} is ${target.status} now.`;
}

/** A line with a menu for each VM that can be told; the rest in words. */
function rowsOf(
  view: View,
  shown: readonly Detail[],
  labels: readonly string[],
  known: readonly string[],
) {
  const controlled = known.slice(0, mostWithControls);
  const rows = controlled.flatMap((label) => {
    const vm = view.vms.get(label);
    if (!vm) return [];
    const theirs = shown.filter((detail) => detail.vm === label);
    const what = firstFew(distinct(theirs.map((detail) => detail.name)), mostNames);
    const summary = theirs.find((detail) => detail.summary !== "")?.summary;
    const menu = controlsOf(view, vm, false);
    return [
      section(
        lines(statusLine(vm.target), md`${what}${summary === undefined ? "" : `: ${summary}`}`),
        fitsMenu(menu) ? menu : menu[0],
      ),
    ];
  });
  const others = labels.filter((label) => !controlled.includes(label));
  const names = others.map((label) => calledOf(label, view.vms));
  const rest = firstFew(names, mostInWords);
  return labels.length > 1 && names.length > 0
    ? [...rows, section(md`${rows.length > 0 ? "Also on" : "On"} ${rest}.`)]
    : rows;
}

/**
 * What can be pressed for one VM. Beside others they stand in a menu, which can't ask: then the press does. A value names things,
 * and never holds words of an alert.
 */
function controlsOf(view: View, { n, target }: ShownVm, asks = true): ButtonSpec[] {
  const { alert, offered, frozenBy, policy } = view;
  const mayChange = alert.state === "firing" && frozenBy === undefined;
  return offered.flatMap((command) => {
    if (isChange(command)) {
      const { offeredIn = [target.status] } = command.on === "vm" ? command : {};
      if (!mayChange || !offeredIn.includes(target.status)) return [];
    }
    const value = JSON.stringify({ alert: alert.id, vm: n, n: alert.pressed });
    const action = `alert:${dottedName(command)}`;
    const label = isChange(command) ? command.say.verb : verbOf(command);
    const isAsked = isChange(command) && command.class === "disrupt";
    const spec = { label: isAsked ? `${label}…` : label, action, value };
    if (!asks) return [spec];
    const button = askOnce(spec, command, target, policy);
    return [button.confirm ? { ...button, action: `${action}${asked}` } : button];
  });
}

/** What a press has confirmed already, as buttons that run commands say it. */
export const asked = ":asked";

/** `Show` of `vm show`. */
function verbOf({ name: called }: Pick<Command, "name">): string {
  const verb = called.split(" ").at(-1) ?? called;
  return `${verb.slice(0, 1).toUpperCase()}${verb.slice(1)}`;
}

/** In place of a confirmation that a menu can't ask for. */
export function renderConfirm(
  spec: { action: string; value: string },
  command: Command,
  target: Target,
): Message {
  const label = isChange(command) ? command.say.verb : verbOf(command);
  const text = md`${label} ${name(calledName(target))}? What runs there is interrupted.`;
  const button = {
    label,
    value: spec.value,
    action: `${spec.action}${asked}`,
    style: "danger" as const,
  };
  return message(news(text), section(text), buttons([button]));
}

/** Whether a press from a menu has still to be confirmed: a form, or `confirm` of the policy, asks after it. */
export const mustAsk = (command: Command, target: Target, policy: Pick<Policy, "confirm">) =>
  command.class === "disrupt" &&
  !hasForm(command) &&
  isChange(command) &&
  !isToConfirm(policy, target);

/** In the thread of its message. */
export function renderEvent(
  { is, vms: labels }: AlertEvent,
  { alert, vms }: Pick<View, "alert" | "vms">,
): Message {
  if (is === "ended")
    return notice(md`✅ Ended: ${headline({ alert, vms })}. Nothing fires any more.`);
  const what = firstFew(distinct(detailsOf(alert.group).map((one) => one.name)), mostNames);
  const where = firstFew(
    labels.map((label) => calledOf(label, vms)),
    mostInWords,
  );
  const on = where === "" ? "" : ` on ${where}`;
  return notice(md`🔥 ${is === "fired" ? `Fires again: ${what}${on}` : `${what} fires${on} too`}.`);
}

const mostListed = 20;

/** One message for groups that came faster than a channel takes messages: some by name, the rest counted. */
export function renderOverview(
  shown: readonly View[],
  counts: { firing: number; ended: number },
): Message {
  const { firing, ended } = counts;
  const groups = counted(firing, "alert group");
  const sign = firing > 0 ? "🔥" : "✅";
  const head =
    firing > 0
      ? md`${sign} *${groups} firing*${ended > 0 ? `, ${ended.toLocaleString("en-US")} ended` : ""}. They came faster than this channel takes messages, so they share this one.`
      : md`${sign} *All ${counted(ended, "alert group")} of this message have ended.*`;
  const rows = shown.slice(0, mostListed).map((view, n) => {
    const [vm, ...others] = view.vms.values();
    const menu =
      vm && others.length === 0 && n < mostWithControls ? controlsOf(view, vm, false) : [];
    const [first] = shownOf(view.alert);
    const text = md`🔥 *${headline(view)}*${first ? md`, since ${atTime(first.since)}` : ""}`;
    return section(text, menu.length > 0 && fitsMenu(menu) ? menu : undefined);
  });
  const more = firing - rows.length;
  const [top] = shown;
  const news1 =
    firing > 0
      ? `${sign} ${groups} firing${top ? `: ${headline(top)}` : ""}`
      : `${sign} All have ended`;
  return message(
    news(md`${news1}`),
    section(head),
    rows,
    more > 0 && rows.length > 0
      ? context(md`… and ${more.toLocaleString("en-US")} more firing.`)
      : undefined,
  );
}
