import type { Policy } from "../../config/policy-file.ts";
import { scopeOfChannel } from "../../core/permit/access.ts";
import { type SeenTarget, seenWith } from "../../core/permit/sight.ts";
import { targetOf } from "../../core/submit/resolve-targets.ts";
import type { Inventory } from "../../fleet/inventory/inventory.ts";
import { calledName } from "../../registry/define.ts";
import type { AlertOnVm, AlertPart } from "../alert-part.ts";
import type { LabeledVm } from "./alert-record.ts";
import { type Alerts, detailsOf, isFiring, type StoredAlert } from "./alerts.ts";
import { linksOf } from "./render-alert.ts";

/** Tells other features of alerts, as far as the channel of the group's message may know. */
export function alertPart(on: {
  alerts: Pick<Alerts, "getWithLater" | "openOn" | "placeOf" | "touch">;
  inventory: Pick<Inventory, "seenIn">;
  config: { readonly policy: Policy };
}): AlertPart {
  const { alerts } = on;

  /** As the group's message calls it: a VM that its channel may not see is called by its label. */
  async function calledIn(channelId: string, vmId: string, label: string): Promise<string> {
    const scope = scopeOfChannel(on.config.policy, channelId);
    const seen = on.inventory.seenIn(async () => scope);
    const match = await seen.findVm(vmId, { onlyKnown: true });
    const isIt = "record" in match && match.record.id === vmId;
    return isIt ? calledName(targetOf(match.record)) : label;
  }

  /** Whether a VM's people are those of the project in which an alert found it. */
  const isOfThesePeople = (vm: SeenTarget, then: LabeledVm["project"]): boolean =>
    then === undefined ||
    then.id === vm.projectId ||
    seenWith(vm, on.config.policy)([{ ...vm, projectId: then.id, projectName: then.name }]);

  return {
    async firingOn(vm, at) {
      const open = await alerts.openOn(vm.id);
      const heardOf = open.filter(({ createdAt, record }) => {
        const labeled = record.vms.filter(({ id }) => id === vm.id);
        return createdAt <= at && labeled.some(({ project }) => isOfThesePeople(vm, project));
      });
      return heardOf.map(({ id }) => id);
    },
    async find(alertId, vmId) {
      const onVm = (await alerts.getWithLater(alertId)).flatMap((alert) => {
        const { vms, group } = alert.record;
        const labeled = vms.filter(({ id }) => id === vmId);
        const [first] = labeled;
        if (!first) return [];
        const projects = new Map(labeled.map(({ label, project }) => [label, project]));
        const details = detailsOf(group).filter((detail) => projects.has(detail.vm));
        return [{ alert, label: first.label, projects, details }];
      });
      const newest = onVm.at(-1);
      if (!newest) return undefined;
      const { alert, label, details } = newest;
      const place = await alerts.placeOf(alert);
      return {
        vm: await calledIn(place?.channelId ?? alert.record.channelId, vmId, label),
        alerts: onVm.flatMap((firing) =>
          firing.details.map((detail) => ({
            name: detail.name,
            project: firing.projects.get(detail.vm),
            since: detail.since,
            heardAt: detail.heardAt,
            isLeftOut: detail.isLeftOut,
            endedAt: detail.isEndTold ? detail.endedAt : undefined,
            state: stateOf(detail, firing.alert),
          })),
        ),
        place,
        source: alert.record.source,
        changedAt: Math.max(...onVm.map((firing) => newsAt(firing.alert))),
        links: linksOf(details),
      };
    },
    async redraw(alertId) {
      for (const { id } of await alerts.getWithLater(alertId)) await alerts.touch(id);
    },
  };
}

/** When something was last learned of a group, from its source or from its silence (ms by Redis). */
export const newsAt = ({ changedAt, record }: StoredAlert): number =>
  Math.max(changedAt, record.group.told?.heardAt ?? 0);

function stateOf(
  detail: { endedAt: number | undefined; isMissing: boolean },
  { record: { silence } }: StoredAlert,
): AlertOnVm["state"] {
  if (silence !== undefined || detail.isMissing) return "unheard";
  return isFiring(detail) ? "firing" : "ended";
}
