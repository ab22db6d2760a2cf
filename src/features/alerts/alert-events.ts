import { recordedText } from "../../audit/render.ts";
import type { AuditEntry } from "../../audit/read-audit.ts";
import type { SeenTarget } from "../../core/permit/sight.ts";
import type { KnownVm } from "../../fleet/inventory/inventory.ts";
import { type Markdown, counted, dayAndTime, listed, md, name } from "../../messages/markdown.ts";
import type { Event, EventKind, EventSource } from "../../core/events/event.ts";
import type { Alerts, StoredAlert } from "./alerts.ts";
import { type ShownAlert, detailsOf } from "./alert-group.ts";

const kind: EventKind = { words: ["alert ended", "alerts ended"], weight: "decision" };

/** Each time that a group of alerts fired, as far as the reader sees their VMs. */
export const alertEvents = (alerts: Pick<Alerts, "getMany">): EventSource => ({
  name: "alerts",
  recordKinds: ["alert"],
  async read(entries, { vms, seesAll, only }) {
    const byGroup = Map.groupBy(entries, ({ record }) => recordedText(record["alert"]));
    const groups = await alerts.getMany([...byGroup.keys()]);
    const seen = new Map(vms.map((vm) => [vm.id, vm]));
    const events = groups.map(async (group): Promise<Event[]> => {
      const of = detailsOf(group.record.group);
      const onSeen = await only(Promise.resolve(of), ({ vm }) => targetThen(group, vm, seen));
      const shown = seesAll ? of : onSeen;
      if (shown.length === 0) return [];
      const firings = firingsIn(byGroup.get(group.id) ?? []);
      return firings.map((firing, n) => {
        const isNewest = n === firings.length - 1;
        return {
          id: `${group.id} ${firing.records[0] ?? ""}`,
          kind,
          endedAt: firing.endedAt,
          at: isNewest ? beganAt(firing, shown, firings[n - 1]?.endedAt) : firing.at,
          text: groupWords(group, shown, seen, isNewest ? undefined : firing.endedAt),
          // The records count all alerts of the group.
          records: shown.length === of.length ? firing.records : [],
        };
      });
    });
    return (await Promise.all(events)).flat();
  },
});

/** One time that a group fired, by its records (times in ms by Redis). */
interface Firing {
  /** When Gatehouse learned of it, or of its end if it began before the first record. */
  at: number;
  endedAt: number | undefined;
  /** IDs of its records. */
  records: readonly string[];
}

/** Splits the records of a group, oldest first, after each that says that none of its alerts fires. */
function firingsIn(entries: readonly AuditEntry[]): readonly Firing[] {
  const firings: Firing[] = [];
  for (const { id, at, record } of entries) {
    const last = firings.at(-1);
    const isOpen = last !== undefined && last.endedAt === undefined;
    const endedAt = Number(record["firing"]) > 0 ? undefined : at;
    if (isOpen) firings.splice(-1, 1, { ...last, endedAt, records: [...last.records, id] });
    // A second record of an end, as of a late copy, belongs to the firing before it.
    else if (last !== undefined && endedAt !== undefined)
      firings.splice(-1, 1, { ...last, records: [...last.records, id] });
    else firings.push({ at, endedAt, records: [id] });
  }
  return firings;
}

/**
 * When the newest firing of a group began, as its source says, but not before the end of the firing
 * before it, nor after Gatehouse learned of it: these are two clocks.
 */
const beganAt = ({ at }: Firing, shown: readonly ShownAlert[], endBefore = 0): number =>
  Math.min(at, ...shown.map(({ since }) => since).filter((since) => since >= endBefore));

/** The VM of a label in its project when the label arrived, or without one on record, now. */
function targetThen(
  { record: { vms } }: StoredAlert,
  label: string,
  seen: ReadonlyMap<string, KnownVm>,
): SeenTarget | undefined {
  const { id = "", project } = vms.find((vm) => vm.label === label) ?? {};
  const now = seen.get(id);
  const { id: projectId, name: projectName } = project ?? {
    id: now?.projectId,
    name: now?.projectName,
  };
  if (projectId === undefined || projectName === undefined) return undefined;
  return { kind: "vm", id, name: now?.name ?? label, projectId, projectName };
}

const vmIdOf = ({ record: { vms } }: StoredAlert, label: string) =>
  vms.find((vm) => vm.label === label)?.id ?? "";

function groupWords(
  group: StoredAlert,
  shown: readonly ShownAlert[],
  seen: ReadonlyMap<string, KnownVm>,
  /** When a former firing ended, which the group itself knows no more (ms). */
  formerEnd?: number,
): Markdown {
  const names = [...new Set(shown.map((alert) => alert.name))];
  const labels = [...new Set(shown.map(({ vm }) => vm).filter((vm) => vm !== ""))];
  const called = labels.map((label) => seen.get(vmIdOf(group, label))?.name ?? label);
  const on = called.length > 0 ? md` on ${listed(called, 3)}` : md``;
  const firing = shown.filter(({ endedAt }) => endedAt === undefined).length;
  const many = shown.length > 1 ? ` (${counted(shown.length, "alert")})` : "";
  const headline = md`*${names.slice(0, 3).join(", ")}*${on}${many}`;
  const attribution = md`, says ${name(group.record.source)}.`;
  if (formerEnd !== undefined)
    return md`✅ ${headline} ended ${dayAndTime(formerEnd)}${attribution}`;
  if (firing > 0)
    return md`🔥 ${headline} fires${firing < shown.length ? ` (${firing} of them)` : ""}${attribution}`;
  const over = Math.max(...shown.map(({ endedAt }) => endedAt ?? 0));
  const isTold = shown.some(({ isMissing }) => !isMissing);
  return isTold
    ? md`✅ ${headline} ended ${dayAndTime(over)}${attribution}`
    : md`⚪ ${headline}: ${name(group.record.source)} stopped reporting it ${dayAndTime(over)}.`;
}
