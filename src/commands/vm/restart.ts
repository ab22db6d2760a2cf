import * as z from "zod";
import { targets, defineCommand } from "../../registry/define.ts";
import { interrupts, leftStatus, onlyIn } from "../effects.ts";

export const restart = defineCommand({
  on: "vm",
  name: "vm restart",
  aliases: ["reboot"],
  roles: ["everyday", "helps-in-trouble"],
  startLabel: "Restart a VM…",
  shortcut: {
    callback: "restart-vm",
    type: "global",
    name: "Restart a VM…",
    description: "Choose a VM and restart it",
  },
  summary: "Restart a running VM",
  example: "/vm restart web-1",
  class: "disrupt",
  protect: false,
  attestAfter: true,
  args: z.object({ vms: targets("vm").describe("the VMs to restart") }),
  say: { verb: "Restart", doing: "Restarting", done: "Restarted", until: "it runs again" },
  next: [{ label: "Show", command: "vm.show" }],
  risk: ({ target }) => [interrupts(target)],
  offeredIn: ["RUNNING", "ERROR"],
  effect: {
    notNow: (vm) =>
      onlyIn(vm, ["RUNNING", "ERROR"], {
        text: `${vm.name} is stopped.`,
        hint: `\`/vm start ${vm.name}\` starts it.`,
        instead: { label: "Start", command: "vm.start" },
      }),
    wanted: (now) => now?.status === "RUNNING",
    // It ends in the status in which it began, so only a transition proves it
    needsMark: true,
    // RUNNING after ERROR is none: it may have recovered by itself
    mark: (now, before) =>
      now?.status === "REBOOTING" || (now?.status !== "RUNNING" && leftStatus(now, before)),
  },
  perform: (vm, _args, { compute }) => compute.vms.restart(vm.id),
});
