import * as z from "zod";
import { small } from "../../messages/parts.ts";
import { listing, sentence } from "../../messages/card.ts";
import { counted, duration, md, name } from "../../messages/markdown.ts";
import { table } from "../../messages/table.ts";
import { defineCommand, target } from "../../registry/define.ts";
import { type ReadContext, isKept } from "../../commands/context.ts";
import { withNames } from "../../core/cards/known-people.ts";
import { isoTime, time } from "../../commands/shapes.ts";
import { vmFields } from "../../fleet/compute/compute.ts";
import { sizeWords } from "../../commands/specs-words.ts";

const maxRows = 50;

const snapshotShape = z.object({
  id: z.string().describe("empty where the service gave none: then it can't be restored"),
  name: z.string(),
  takenAt: time,
  takenBy: z.string().describe("a Slack user ID; empty where it isn't known"),
  isSafety: z.boolean().optional().describe("taken for a restore, so that it can be undone"),
  measurement: z.string().optional(),
  specs: vmFields.specs,
});

export const snapshots = defineCommand({
  name: "vm snapshots",
  summary: "List the snapshots of a VM that Gatehouse knows of",
  example: "/vm snapshots db-1",
  roles: ["lists-snapshots"],
  class: "read",
  onCard: "Snapshots",
  args: z.object({ vm: target("vm").describe("the VM") }),
  async answer({ vm: words }, reading: ReadContext) {
    const { snapshots: known, resolve, now, nameOf, learnNames } = reading;
    const vm = await resolve("vm", words);
    const all = await known.of(vm.id);
    await learnNames(all.slice(0, maxRows).map(({ by: taker }) => taker));
    const note = small(
      md`The compute service can't list snapshots: these were taken with Gatehouse or restored by an ID typed here. Their sizes are unknown.`,
    );
    if (all.length === 0) {
      const nothing = md`Gatehouse knows no snapshot of ${name(vm.name)}. ${name(`/vm snapshot ${vm.name}`)} takes one.`;
      return sentence(nothing, note);
    }
    const rows = all
      .slice(0, maxRows)
      .map((snapshot) => [
        snapshot.name || "–",
        snapshot.id ||
          (snapshot.claimed
            ? `${snapshot.claimed.id}, to be confirmed`
            : "no ID: can't be restored"),
        isKept(reading) ? { at: snapshot.at } : `${duration(now() - snapshot.at)} ago`,
        snapshot.isSafety ? "safety snapshot" : withNames(snapshot.by, nameOf),
        sizeWords(snapshot.specs),
        snapshot.measurement ? `${snapshot.measurement.slice(0, 12)}…` : "unknown",
      ]);
    const { part, shown } = table(
      `Snapshots of ${vm.name}`,
      ["Name", "ID", "Taken", "By", "Size", "Measurement"],
      rows,
    );
    const head = md`*${counted(all.length, "snapshot")}* of ${name(vm.name)}, newest first`;
    return listing(head, all.length, shown, part, note);
  },
  data: {
    at: "/v1/vms/{vm}/snapshots",
    shape: z.object({ vmId: z.string(), snapshots: z.array(snapshotShape) }),
    async readData({ vm: words }, { snapshots: known, resolve }: ReadContext) {
      const { id: vmId } = await resolve("vm", words);
      const all = await known.of(vmId);
      const rows = all.map((snapshot) => ({
        ...snapshot,
        takenAt: isoTime(snapshot.at),
        takenBy: snapshot.by,
      }));
      return { vmId, snapshots: rows };
    },
  },
});
