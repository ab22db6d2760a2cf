import * as z from "zod";
import { isSettledVmStatus } from "../../compute/settle.ts";
import { md } from "../../messages/text.ts";
import { flagOnly, target, wholeNumber } from "../../registry/arguments.ts";
import { defineCommand } from "../../registry/define.ts";
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
    vm: target("vm").describe("the VM to resize"),
    cpu: flagOnly(wholeNumber()),
    memory: flagOnly(wholeNumber()),
  }),
  say: { verb: "Resize", doing: "Resizing", done: "Resized" },
  offeredIn: ["RUNNING", "STOPPED"],
  dialog: {
    warn: ({ seen, input }) => {
      const now = seen && "projectId" in seen ? seen.specs : undefined;
      return [
        md`CPU ${now?.cpu ?? "?"} → ${input["cpu"] ?? "?"}, memory ${now?.memory ?? "?"} → ${input["memory"] ?? "?"} (as the service counts them).`,
        md`⚠️ Resizing restarts the VM: what runs on it is interrupted.`,
      ];
    },
  },
  effect: {
    already: (vm, args) => hasSpecs(vm, args),
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
