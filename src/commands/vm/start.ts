import * as z from "zod";
import { targets, defineCommand } from "../../registry/define.ts";
import { onlyIn } from "../effects.ts";

export const start = defineCommand({
  on: "vm",
  name: "vm start",
  aliases: ["boot"],
  summary: "Start a stopped VM",
  example: "/vm start gpu-1",
  class: "change",
  protect: false,
  attestAfter: true,
  args: z.object({ vms: targets("vm").describe("the VMs to start") }),
  next: [{ label: "Stop", command: "vm.stop", interrupts: true }],
  say: { verb: "Start", doing: "Starting", done: "Started", until: "it runs" },
  offeredIn: ["STOPPED"],
  effect: {
    already: (vm) => vm.status === "RUNNING",
    notNow: (vm) =>
      onlyIn(vm, ["STOPPED", "RUNNING", "ERROR"], {
        text: `${vm.name} can't be started now: it is ${vm.status}.`,
      }),
    wanted: (now) => now?.status === "RUNNING",
    untouched: (now, before) => now !== undefined && now.status === before?.status,
  },
  perform: (vm, _args, { compute }) => compute.vms.start(vm.id),
});
