import * as z from "zod";
import { md, name } from "../../messages/text.ts";
import { flagOnly, target } from "../../registry/arguments.ts";
import { defineCommand } from "../../registry/define.ts";
import { onlyIn } from "./vm-effects.ts";

export const restore = defineCommand({
  kind: "change",
  on: "vm",
  name: "vm restore",
  summary: "Put a VM back to a snapshot; its data since then is lost",
  example: "/vm restore db-1 snap-42",
  class: "destroy",
  args: z.object({
    vm: target("vm").describe("the VM to put back"),
    snapshot: z
      .string()
      .regex(/^[A-Za-z0-9._:-]{1,75}$/, {
        error: "must be a snapshot's id, as /vm snapshots shows it",
      })
      .meta({ picker: "snapshot", description: "its id; names without an id can't be restored" }),
    noSafety: flagOnly(z.boolean().optional()).meta({
      flagOnly: true,
      label: "Way back",
      description: "Don't take a safety snapshot first (then there is no Undo)",
    }),
  }),
  say: { verb: "Restore", doing: "Restoring", done: "Restored" },
  offeredIn: ["RUNNING", "STOPPED", "ERROR"],
  safetyFirst: ({ noSafety }) => noSafety !== true,
  dialog: {
    warn: ({ target: vm, snapshots, foreignSnapshotOf }) => [
      ...(foreignSnapshotOf === undefined
        ? []
        : [
            md`🚨 I know this snapshot as one of ${name(foreignSnapshotOf)}, another VM. The service doesn't say what it would do.`,
          ]),
      md`⚠️ All data of ${name(vm.name)} is replaced by the snapshot's. What was written since is lost.`,
      snapshots.length === 0
        ? md`I know no snapshot of it. An id that you have from elsewhere can be typed; I can't tell whether it is of this VM.`
        : md`I know ${snapshots.length} ${snapshots.length === 1 ? "snapshot" : "snapshots"} of it.`,
      md`A safety snapshot is taken right before, unless you refuse it: it is the way back.`,
    ],
  },
  effect: {
    notNow: (vm) =>
      onlyIn(vm, ["RUNNING", "STOPPED", "ERROR"], {
        text: `${vm.name} can't be restored now: it is ${vm.status}.`,
      }),
    wanted: (now) => now?.status === "RUNNING" || now?.status === "STOPPED",
    needsMark: true,
    // A time of change that moved proves nothing: the safety snapshot right before may have moved it
    mark: (now, before) =>
      (now?.status === "REBOOTING" || now?.status === "CREATING") && now.status !== before?.status,
    again: "never",
  },
  perform: (vm, { snapshot }, { compute }) => compute.vms.restore(vm.id, snapshot),
  tell: (_before, _after, args) => md`From snapshot ${name(args.snapshot)}.`,
});
