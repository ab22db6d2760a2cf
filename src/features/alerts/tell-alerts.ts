import type { DigestPart, Line } from "../digest-part.ts";
import type { Fact, FactSource } from "../../core/facts/fact.ts";
import { calledName } from "../../registry/define.ts";
import { showVm } from "../../registry/command-buttons.ts";
import type { KnownVm } from "../../fleet/inventory/inventory.ts";
import { atTime, md, name, timeNear } from "../../messages/markdown.ts";
import type { Alerts, FiringAlert } from "./alerts.ts";
import type { SeenTarget, Sight } from "../../core/permit/sight.ts";
import type { HomePart } from "../home-part.ts";

type OnVm<Alert> = Alert & { vm: KnownVm | undefined };

/**
 * The alerts on VMs that the reader saw when the alerts arrived; a VM that was moved since is called
 * by its label. A reader who sees everything also gets alerts whose label names no known VM.
 */
async function alertsOn<Alert extends FiringAlert>(
  { vms, seesAll, only }: Sight,
  alerts: readonly Alert[],
): Promise<readonly OnVm<Alert>[]> {
  const known = new Map(vms.map((vm) => [vm.id, vm]));
  const all = alerts.map((alert) => ({ ...alert, vm: known.get(alert.vmId ?? "") }));
  const seen = new Set(await only(Promise.resolve(all), targetThen));
  return all.filter((alert) => seen.has(alert) || (seesAll && alert.vmId === undefined));
}

/** The VM of an alert in its project then. Without one on record, it is in its project now. */
function targetThen(alert: Omit<OnVm<FiringAlert>, "key" | "since">): SeenTarget | undefined {
  const { vm, vmId, label, project } = alert;
  if (vmId === undefined || (!vm && !project)) return undefined;
  const { projectId = "", projectName } = project
    ? { projectId: project.id, projectName: project.name }
    : (vm ?? {});
  return {
    kind: "vm",
    id: vmId,
    name: vm?.name ?? label,
    projectId,
    ...(projectName === undefined ? {} : { projectName }),
  };
}

const whereOf = ({ vm, label }: Pick<OnVm<FiringAlert>, "vm" | "label">) =>
  vm ? md` on ${name(vm.name)} in ${vm.projectName}` : label && md` on ${label}`;

function firingLine(firing: OnVm<FiringAlert>, now: number): Line {
  const { key, name: alert, label, vm, since, quietSince } = firing;
  const quiet = quietSince && md` Its source stopped reporting it ${atTime(quietSince, now)}.`;
  const text = md`🔥 *${alert}* has been firing${whereOf({ vm, label })} since ${timeNear(since, now)}.${quiet ?? ""}`;
  return { key, text, button: vm && showVm(vm) };
}

/** The lines of digests: alerts that fire. */
export const alertsInDigests = (alerts: Pick<Alerts, "firing">): DigestPart => ({
  name: "alerts",
  tellsFacts: ["alert"],
  async read({ now, ...sight }) {
    const shown = await alertsOn(sight, await alerts.firing());
    const many = new Set(shown.flatMap(({ vm }) => (vm ? [vm.id] : []))).size;
    return {
      all: [
        {
          kind: "firing",
          words: ["alert firing", "alerts firing"],
          place: "alarm",
          lines: shown.map((alert) => firingLine(alert, now)),
        },
      ],
      counts: many === 0 ? "" : `, 🔥 ${many} with an alert firing`,
    };
  },
});

/** Firing alerts on the Home tab, the newest first. */
export const alertsAtHome =
  (alerts: Pick<Alerts, "firing">): HomePart =>
  async ({ now, ...sight }) => {
    const firing = await alertsOn(sight, await alerts.firing());
    const lines = firing.toReversed().map((alert) => ({ ...firingLine(alert, now), vm: alert.vm }));
    return { title: "Alerts", lines };
  };

/** Says which alerts fire on VMs. */
export const alertFacts = (alerts: Pick<Alerts, "firing">): FactSource => ({
  name: "firing alerts",
  async read({ targets, now }) {
    const known = new Map(targets.map((target) => [target.id, target]));
    return (await alerts.firing()).flatMap(({ name: alert, vmId, project, since }): Fact[] => {
      const vm = known.get(vmId ?? "");
      if (!vm) return [];
      return [
        {
          kind: "alert",
          about: vm,
          severity: "warning",
          sign: "🔥",
          text: md`${alert} has been firing on ${name(calledName(vm))} since ${timeNear(since, now)}.`,
          since,
          learnedOf: project && [{ ...vm, projectId: project.id, projectName: project.name }],
        },
      ];
    });
  },
});
