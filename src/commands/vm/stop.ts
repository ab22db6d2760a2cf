import * as z from "zod";
import { targets } from "../../registry/arguments.ts";
import { defineCommand } from "../../registry/define.ts";
import { rollingArgs } from "../../registry/rolling.ts";
import { onlyIn } from "./vm-effects.ts";

export const stop = defineCommand({
  kind: "change",
  on: "vm",
  name: "vm stop",
  summary: "Stop a running VM",
  example: "/vm stop web-1",
  class: "disrupt",
  args: z.object({ vms: targets("vm").describe("the VMs to stop"), ...rollingArgs }),
  say: { verb: "Stop", doing: "Stopping", done: "Stopped" },
  offeredIn: ["RUNNING"],
  effect: {
    already: (vm) => vm.status === "STOPPED",
    notNow: (vm) =>
      onlyIn(vm, ["RUNNING", "STOPPED"], {
        text: `${vm.name} is ${vm.status}, and only a running VM can be stopped.`,
        hint: `\`/vm restart ${vm.name}\` may bring it back.`,
      }),
    wanted: (now) => now?.status === "STOPPED",
    untouched: (now, before) => now !== undefined && now.status === before?.status,
    again: "once",
  },
  perform: (vm, _args, { compute }) => compute.vms.stop(vm.id),
});
