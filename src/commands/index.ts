import * as z from "zod";
import { defineCommand, type Command } from "../registry/define.ts";
import { targets } from "../registry/arguments.ts";
const args = z.object({ vms: targets("vm") });
export const commands: readonly Command[] = [
  defineCommand({ kind: "change", on: "vm", name: "vm restart", summary: "x", example: "/vm restart web-1", class: "disrupt", args,
    say: { verb: "Restart", doing: "Restarting", done: "Restarted" },
    effect: { wanted: (n) => n?.status === "RUNNING", mark: (n) => n?.status === "REBOOTING", needsMark: true, again: "never" },
    perform: (vm, _a, { compute }) => compute.vms.restart(vm.id) }),
  defineCommand({ kind: "change", on: "vm", name: "vm stop", summary: "x", example: "/vm stop web-1", class: "disrupt", args,
    say: { verb: "Stop", doing: "Stopping", done: "Stopped" },
    effect: { already: (n) => n.status === "STOPPED", wanted: (n) => n?.status === "STOPPED", untouched: (n, b) => n?.status === b?.status, again: "once" },
    perform: (vm, _a, { compute }) => compute.vms.stop(vm.id) }),
];
