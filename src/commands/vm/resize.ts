import * as z from "zod";
import { isSettledVmStatus } from "../../compute/settle.ts";
import { md } from "../../messages/text.ts";
import { targets, wholeNumber } from "../../registry/arguments.ts";
import { defineCommand } from "../../registry/define.ts";
import { rollingArgs } from "../../registry/rolling.ts";
import { keepsSpecs } from "../keeps-specs.ts";
import { hasSpecs, onlyIn } from "./vm-effects.ts";

export const resize = defineCommand({
  kind: "change",
  on: "vm",
  name: "vm resize",
  summary: "Give a VM other CPU and memory; it restarts",
  example: "/vm resize web-1 --cpu 4 --memory 8",
  class: "disrupt",
  args: z.object({
    vms: targets("vm").describe("the VMs to resize"),
    cpu: wholeNumber().meta({ flagOnly: true, label: "CPU" }),
    memory: wholeNumber().meta({ flagOnly: true }),
    ...rollingArgs,
  }),
  say: { verb: "Resize", doing: "Resizing", done: "Resized" },
  offeredIn: ["RUNNING", "STOPPED"],
  dialog: {
    warn: ({ seen, input }) => {
      const now = seen && "projectId" in seen ? seen.specs : undefined;
      return [
        md`CPU ${step(now?.cpu, input["cpu"])}, memory ${step(now?.memory, input["memory"])} (as the service counts them).`,
        md`⚠️ Resizing restarts the VM: what runs on it is interrupted.`,
      ];
    },
  },
  effect: {
    // Not while it is on its way there, nor when it got there and failed
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
    again: "once",
  },
  perform: (vm, { cpu, memory }, { compute }) => compute.vms.resize(vm.id, { cpu, memory }),
  tell: (before, after) =>
    md`CPU ${before?.specs?.cpu ?? "?"} → ${after?.specs?.cpu ?? "?"}, memory ${before?.specs?.memory ?? "?"} → ${after?.specs?.memory ?? "?"}.`,
});

/** `4 → 8`, or only what stands as long as nothing else was given. */
function step(now: number | undefined, wanted: unknown): string {
  const stands = String(now ?? "not told");
  return typeof wanted === "string" && wanted !== "" ? `${stands} → ${wanted}` : stands;
}
