import { frozenWords } from "../../core/cards/asking.ts";
import { type Message } from "../../messages/blocks.ts";
import { paragraph } from "../../messages/parts.ts";
import { list, sentence, card } from "../../messages/card.ts";
import { counted, lines, type Markdown, md } from "../../messages/markdown.ts";
import { detailsOf, isFiring, type StoredAlert } from "./alerts.ts";
import {
  calledOf,
  few,
  headline,
  menuOf,
  mostWithControls,
  pressLine,
  shownOf,
  statusLine,
  summariesOf,
  timeOn,
  type View,
} from "./render-alert.ts";

/** The firing groups of one VM, or one group of several VMs. */
interface OverviewRow {
  /** The view of the first group. */
  view: View;
  groups: readonly StoredAlert[];
}

/** Firing groups by what they are on: those of one VM are together, in the order of the first. */
export function groupsByVm(firing: readonly StoredAlert[]): readonly (readonly StoredAlert[])[] {
  const byPlace = Map.groupBy(firing, (alert) => {
    const labels = new Set(shownOf(alert).map(({ vm }) => vm));
    const [label = ""] = labels;
    if (labels.size !== 1 || label === "") return `group ${alert.id}`;
    const vmId = alert.record.vms.find((vm) => vm.label === label)?.id;
    return vmId === undefined ? `label ${label}` : `vm ${vmId}`;
  });
  return [...byPlace.values()];
}

/**
 * Renders one message for groups that came faster than a channel takes messages: each VM with its
 * alerts, the first ones by name, the rest counted.
 */
export function renderOverview(
  rows: readonly OverviewRow[],
  { firing, ended }: { firing: number; ended: number },
): Message {
  const groups = counted(firing, "alert group");
  const [top] = rows;
  if (!top)
    return sentence(md`✅ All ${counted(ended, "alert group")} of this message have ended.`);
  const blocks = rows.map((row, n) => {
    const only = onlyVmOf(row);
    return paragraph(
      rowText(row),
      only && n < mostWithControls ? menuOf(row.view, only) : undefined,
    );
  });
  const over = ended > 0 ? `, ${ended.toLocaleString("en-US")} ended` : "";
  const shown = rows.reduce((sum, row) => sum + row.groups.length, 0);
  const beyond = firing - shown;
  return card({
    sign: "🔥",
    title: md`*${groups} firing*${over}. They came faster than this channel takes messages, so they share this one.`,
    push: md`🔥 ${groups} firing: ${titleOf(top)}`,
    lines: [frozenWords(top.view.frozen)],
    body: [
      list(blocks, {
        beyond: beyond > 0 ? 1 : 0,
        rest(_left, many) {
          const groupsShown = rows.slice(0, many).reduce((sum, row) => sum + row.groups.length, 0);
          return md`… and ${(firing - groupsShown).toLocaleString("en-US")} more firing.`;
        },
      }),
    ],
  });
}

function onlyVmOf({ view }: OverviewRow) {
  const [vm, ...others] = view.vms.values();
  return others.length === 0 ? vm : undefined;
}

/** `web-1: 7 alerts`, or the headline of one group. */
function titleOf({ view, groups }: OverviewRow): string {
  const firing = firingIn(groups);
  if (groups.length === 1) return headline(view);
  const [first] = firing;
  return `${calledOf(first?.vm ?? "", view)}: ${counted(firing.length, "alert")}`;
}

const firingIn = (groups: readonly StoredAlert[]) =>
  groups.flatMap(({ record }) => detailsOf(record.group).filter(isFiring));

function rowText(row: OverviewRow): Markdown {
  const { view, groups } = row;
  const firing = firingIn(groups);
  const severity = few(firing.map((detail) => detail.severity));
  const since = Math.min(...firing.map((detail) => detail.since));
  const isNamed = groups.length > 1;
  const only = onlyVmOf(row);
  return lines(
    md`🔥 *${titleOf(row)}*${severity && ` · ${severity}`}${firing.length > 0 ? md`, since ${timeOn(view.alert, since)}` : ""}`,
    ...summariesOf(firing, isNamed),
    only && statusLine(only, view),
    ...view.presses.map((press) => pressLine(press, view)),
  );
}
