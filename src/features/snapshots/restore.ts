import * as z from "zod";
import { type KnownSnapshot, snapshotName } from "../../fleet/inventory/snapshots.ts";
import { Markdown, atTime, duration, md, name, timeNear } from "../../messages/markdown.ts";
import { type DialogFacts, target, defineCommand } from "../../registry/define.ts";
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
        description: "its name or ID",
      }),
    noSafety: z.boolean().optional().meta({
      isFlag: true,
      label: "Safety snapshot",
      description: "Skip the safety snapshot (no Undo)",
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
    const loss = lost
      ? md`*Everything written to ${vm.name} since ${timeNear(lost.since, lost.since + lost.forMs)} is replaced.*`
      : md`*All data of ${vm.name} is replaced* with the snapshot's. Later data is lost.`;
    return input["noSafety"] === true
      ? [md`🚨 ${loss} *No undo: no safety snapshot is taken.*`]
      : [md`⚠️ ${loss} A safety snapshot is taken first, so it can be undone.`];
  },
  plainRisk: ({ target: vm, input, lost }) => {
    const loss = lost
      ? `Data written in the ${duration(lost.forMs)} before the request is lost.`
      : `Data written to ${vm.name} since the snapshot is lost.`;
    return input["noSafety"] === true ? `${loss} No undo.` : loss;
  },
  offeredIn: ["RUNNING", "STOPPED", "ERROR"],
  exact: withSnapshotId,
  safetyFirst: ({ noSafety }) => noSafety !== true,
  dialog: {
    warn: ({ snapshots, foreignSnapshotOf, input, takenBy, now = Number.POSITIVE_INFINITY }) => {
      const takenWords = (knownSnapshot: KnownSnapshot) =>
        md`aken ${atTime(knownSnapshot.at, now)}${takerOf(knownSnapshot, takenBy)}`;
      const { snapshot } = input;
      const chosen = snapshots.find(
        ({ id, name: called }) => id === snapshot || called === snapshot,
      );
      const shown = snapshots.slice(0, mostShown);
      const left = snapshots.length - shown.length;
      return [
        ...(foreignSnapshotOf === undefined
          ? []
          : [
              md`🚨 This is a snapshot of ${name(foreignSnapshotOf)}, another VM. What the compute service would do with it is unknown.`,
            ]),
        ...(snapshots.length === 0
          ? [
              md`Gatehouse knows no snapshot of it. You can type an ID from elsewhere, but Gatehouse can't check that it is of this VM.`,
            ]
          : []),
        ...(chosen
          ? [md`T${takenWords(chosen)}.`]
          : shown.map(
              (knownSnapshot) =>
                md`• ${name(snapshotName(knownSnapshot, snapshots, now) || knownSnapshot.id)}: t${takenWords(knownSnapshot)}`,
            )),
        ...(!chosen && left > 0 ? [md`…and ${left} more in the list below.`] : []),
      ];
    },
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
  addToResult: (_before, _after, args) => md`The snapshot's ID is ${name(args.snapshot)}.`,
});

/** How many snapshots the form names while none is chosen. */
const mostShown = 3;

/** Who took a snapshot: ` by olivia`. Empty for an ID that was typed by hand. */
function takerOf({ by: taker, isSafety }: KnownSnapshot, names: DialogFacts["takenBy"]): Markdown {
  if (isSafety) return md`, before another restore`;
  const called = names?.get(taker);
  return called === undefined ? md`` : md` by ${called}`;
}
