import * as z from "zod";
import { targets, defineCommand } from "../../registry/define.ts";
import { interrupts, onlyIn } from "../effects.ts";

/** The compute service has no call to delete a VM. */
const lost = "a VM is deleted only with its project";

export const stop = defineCommand({
  on: "vm",
  name: "vm stop",
  aliases: ["shutdown", "halt"],
  suggestFor: { delete: lost, remove: lost, rm: lost },
  summary: "Stop a running VM",
  example: "/vm stop web-1",
  class: "disrupt",
  protect: true,
  attestAfter: false,
  args: z.object({ vms: targets("vm").describe("the VMs to stop") }),
  say: { verb: "Stop", doing: "Stopping", done: "Stopped", until: "it has stopped" },
  next: [{ label: "Start", command: "vm.start" }],
  risk: ({ target }) => [interrupts(target)],
  offeredIn: ["RUNNING"],
  effect: {
    already: (vm) => vm.status === "STOPPED",
    notNow: (vm) =>
      onlyIn(vm, ["RUNNING", "STOPPED"], {
        text: `${vm.name} is ${vm.status}, and only a running VM can be stopped.`,
        hint: `\`/vm restart ${vm.name}\` may recover it.`,
      }),
    wanted: (now) => now?.status === "STOPPED",
    untouched: (now, before) => now !== undefined && now.status === before?.status,
  },
  perform: (vm, _args, { compute }) => compute.vms.stop(vm.id),
});
