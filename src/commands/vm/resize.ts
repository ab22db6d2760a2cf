import * as z from "zod";
import { isSettledVmStatus, type Specs, statusFacts } from "../../fleet/compute/compute.ts";
import { type Markdown, md } from "../../messages/markdown.ts";
import { targets, wholeNumber, defineCommand, type DialogFacts } from "../../registry/define.ts";
import { keepsSpecs, hasSpecs, onlyIn, specsChanged } from "../effects.ts";

export const resize = defineCommand({
  on: "vm",
  name: "vm resize",
  aliases: ["scale"],
  summary: "Change a VM's CPU and memory; it restarts",
  example: "/vm resize web-1 --cpu 4 --memory 8",
  class: "disrupt",
  protect: true,
  attestAfter: true,
  changesMeasurement: true,
  args: z.object({
    vms: targets("vm").describe("the VMs to resize"),
    cpu: wholeNumber().meta({ isFlag: true, label: "CPU" }),
    memory: wholeNumber().meta({ isFlag: true }),
  }),
  say: { verb: "Resize", doing: "Resizing", done: "Resized", until: "it has the new size" },
  risk: () => [md`⚠️ Resizing restarts the VM: what runs on it is interrupted.`],
  offeredIn: ["RUNNING", "STOPPED"],
  dialog: {
    fill: (facts) => written(specsNow(facts)),
    warn: (facts) => {
      const now = specsNow(facts);
      const { cpu, memory } = facts.input;
      return [
        md`CPU ${step(now?.cpu, cpu)}, memory ${step(now?.memory, memory)} (in the compute service's units).`,
        ...doubt("CPU", now?.cpu, cpu),
        ...doubt("memory", now?.memory, memory),
        ...(facts.undoes ? [md`It undoes ${facts.undoes}.`] : facts.isPinned ? [pinned] : []),
      ];
    },
  },
  effect: {
    // It isn't done while the VM is in transition or after a failure.
    already: (vm, args) => ["RUNNING", "STOPPED"].includes(vm.status) && hasSpecs(vm, args),
    notNow: (vm) =>
      onlyIn(vm, ["RUNNING", "STOPPED"], {
        text: `${vm.name} can't be resized now: it is ${vm.status}.`,
      }),
    wanted: (now, _before, args) =>
      now !== undefined && hasSpecs(now, args) && now.status !== "ERROR",
    untouched: (now, before, args) =>
      now !== undefined &&
      isSettledVmStatus(now.status) &&
      keepsSpecs(now.specs, before?.specs, args),
  },
  perform: (vm, { cpu, memory }, { compute }) => compute.vms.resize(vm.id, { cpu, memory }),
  back: {
    label: "Resize back",
    input({ specs: { cpu, memory } = {} }) {
      if (cpu === undefined || memory === undefined) return undefined;
      return { cpu: String(cpu), memory: String(memory) };
    },
  },
  describeResult: (targetName, before, after) => {
    const changed = specsChanged(before?.specs, after?.specs);
    const stands = after && statusFacts(after.status).isStopped ? "; still stopped" : "";
    return changed === "" ? undefined : md`Resized ${targetName}: ${changed}${stands}`;
  },
});

function specsNow({ seen }: Pick<DialogFacts, "seen">): Specs | undefined {
  return seen && "projectId" in seen ? seen.specs : undefined;
}

const pinned = md`⚠️ *It is pinned, and new specs can change its measurement*: then attestation fails until the pin is updated.`;

function written(specs: Specs = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(specs).map(([key, value]) => [key, String(value)]));
}

/**
 * Warns about a number that is at least ten times the current one, or at most a tenth of it,
 * because that is more likely a slip.
 */
function doubt(spec: string, now: number | undefined, wanted: unknown): Markdown[] {
  const times = Number(wanted) / (now || Number.NaN);
  if (!(times >= 10 || (times > 0 && times <= 0.1))) return [];
  const factor = times >= 1 ? `${Math.round(times)} times` : `1/${Math.round(1 / times)} of`;
  return [md`⚠️ *Is ${spec} ${wanted} right?* It is ${factor} today's.`];
}

/** `4 → 8`, or only the current value. */
function step(now: number | undefined, wanted: unknown): string {
  const current = String(now ?? "not reported");
  return typeof wanted === "string" && wanted !== "" ? `${current} → ${wanted}` : current;
}
