import * as z from "zod";
import { counted, dayAndTime, type Markdown, md, name, when } from "../../messages/message.ts";
import { target, defineCommand } from "../../registry/define.ts";
import { onlyIn } from "../../commands/effects.ts";
import { withSnapshotId } from "./resolve-snapshot.ts";

export const restore = defineCommand({
  on: "vm",
  name: "vm restore",
  aliases: ["rollback"],
  summary: "Restore a VM from a snapshot; later data is lost",
  example: "/vm restore db-1 snap-42",
  class: "destroy",
  helpsInError: "restore a snapshot",
  protect: true,
  attestAfter: true,
  snapshot: "restores",
  args: z.object({
    vm: target("vm").describe("the VM to restore"),
    snapshot: z
      .string()
      .regex(/^[A-Za-z0-9._:-]{1,75}$/, {
        error: "must be a snapshot's ID, as /vm snapshots shows it",
      })
      .meta({
        picker: "snapshot",
        description: "by name or ID; a snapshot without an ID can't be restored",
      }),
    noSafety: z.boolean().optional().meta({
      isFlag: true,
      label: "Safety snapshot",
      description: "Don't take a safety snapshot first (then there is no Undo)",
    }),
  }),
  say: {
    verb: "Restore",
    doing: "Restoring",
    done: "Restored",
    until: "it has settled with the snapshot's data",
    detail: ({ snapshot }, labels) => `from ${labels["snapshot"] ?? String(snapshot)}`,
  },
  risk: ({ target: vm, input, lost }) => {
    const what = lost
      ? md`*Everything written to ${vm.name} since ${day(lost.since, lost.forMs)} is replaced.*`
      : md`*All data of ${vm.name} is replaced* with the snapshot's. Later data is lost.`;
    return input["noSafety"] === true
      ? [md`🚨 ${what} *No undo: no safety snapshot is taken.*`]
      : [md`⚠️ ${what} Undo: safety snapshot.`];
  },
  offeredIn: ["RUNNING", "STOPPED", "ERROR"],
  exact: withSnapshotId,
  safetyFirst: ({ noSafety }) => noSafety !== true,
  dialog: {
    warn: ({ snapshots, foreignSnapshotOf }) => [
      ...(foreignSnapshotOf === undefined
        ? []
        : [
            md`🚨 This is a snapshot of ${name(foreignSnapshotOf)}, another VM. What the compute service would do with it is unknown.`,
          ]),
      snapshots.length === 0
        ? md`Gatehouse knows no snapshot of it. You can type an ID from elsewhere, but Gatehouse can't check that it is of this VM.`
        : md`Gatehouse knows ${counted(snapshots.length, "snapshot")} of it.`,
    ],
  },
  effect: {
    notNow: (vm) =>
      onlyIn(vm, ["RUNNING", "STOPPED", "ERROR"], {
        text: `${vm.name} can't be restored now: it is ${vm.status}.`,
      }),
    wanted: (now) => now?.status === "RUNNING" || now?.status === "STOPPED",
    needsMark: true,
    // A newer timestamp proves nothing: the safety snapshot may have caused it
    mark: (now, before) =>
      (now?.status === "REBOOTING" || now?.status === "CREATING") && now.status !== before?.status,
  },
  perform: (vm, { snapshot }, { compute }) => compute.vms.restore(vm.id, snapshot),
  tell: (_before, _after, args) => md`The snapshot's ID is ${name(args.snapshot)}.`,
});

/** The time, with the date if it isn't clear which day it was. */
function day(at: number, agoMs: number): Markdown {
  return agoMs < 12 * 3600_000 ? when(at, "{time}") : dayAndTime(at);
}
