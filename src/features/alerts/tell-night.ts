import type { SeenTarget } from "../../core/permit/sight.ts";
import type { KnownVm } from "../../fleet/inventory/inventory.ts";
import { type Markdown, counted, dayAndTime, listed, md, name } from "../../messages/message.ts";
import type { NightAct, NightPart } from "../night-part.ts";
import type { Alerts, StoredAlert } from "./alerts.ts";
import { type ShownAlert, detailsOf } from "./alert-group.ts";

/** Groups of alerts that fired or ended, as far as the reader sees their VMs. */
export const alertsAtNight = (alerts: Pick<Alerts, "getMany">): NightPart => ({
  name: "alerts",
  what: ["alert"],
  async read(entries, { vms, seesAll, only }) {
    const idOf = (record: Readonly<Record<string, unknown>>) => String(record["alert"]);
    const byGroup = Map.groupBy(entries, ({ record }) => idOf(record));
    const groups = await alerts.getMany([...byGroup.keys()]);
    const seen = new Map(vms.map((vm) => [vm.id, vm]));
    const acts = groups.map(async (group): Promise<NightAct[]> => {
      const of = detailsOf(group.record.group);
      const onSeen = await only(Promise.resolve(of), ({ vm }) => targetThen(group, vm, seen));
      const told = seesAll ? of : onSeen;
      if (told.length === 0) return [];
      const records = (byGroup.get(group.id) ?? []).map(({ id }) => id);
      return [
        {
          key: group.id,
          at: Math.min(...told.map(({ since }) => since)),
          text: groupWords(group, told, seen),
          // The records count all alerts of the group.
          records: told.length === of.length ? records : [],
        },
      ];
    });
    return (await Promise.all(acts)).flat();
  },
});

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
  told: readonly ShownAlert[],
  seen: ReadonlyMap<string, KnownVm>,
): Markdown {
  const names = [...new Set(told.map((alert) => alert.name))];
  const labels = [...new Set(told.map(({ vm }) => vm).filter((vm) => vm !== ""))];
  const called = labels.map((label) => seen.get(vmIdOf(group, label))?.name ?? label);
  const on = called.length > 0 ? md` on ${listed(called, 3)}` : md``;
  const firing = told.filter(({ endedAt }) => endedAt === undefined).length;
  const many = told.length > 1 ? ` (${counted(told.length, "alert")})` : "";
  const what = md`*${names.slice(0, 3).join(", ")}*${on}${many}`;
  const by = md`, says ${name(group.record.source)}.`;
  if (firing > 0)
    return md`🔥 ${what} fires${firing < told.length ? ` (${firing} of them)` : ""}${by}`;
  const over = Math.max(...told.map(({ endedAt }) => endedAt ?? 0));
  const isTold = told.some(({ isMissing }) => !isMissing);
  return isTold
    ? md`✅ ${what} ended ${dayAndTime(over)}${by}`
    : md`⚪ ${what}: ${name(group.record.source)} reported it no longer from ${dayAndTime(over)} on.`;
}
