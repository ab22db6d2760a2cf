import * as z from "zod";
import { context, message, readable, section } from "../../messages/message.ts";
import { duration, md, name } from "../../messages/text.ts";
import { target } from "../../registry/arguments.ts";
import { defineCommand } from "../../registry/define.ts";
import { shownTable } from "../shown-table.ts";

const mostRows = 50;

export const snapshots = defineCommand({
  kind: "read",
  name: "vm snapshots",
  summary: "List the snapshots of a VM that Gatehouse knows of",
  example: "/vm snapshots db-1",
  class: "read",
  args: z.object({ vm: target("vm").describe("the VM") }),
  async answer({ vm: words }, { snapshots: known, resolve, now }) {
    const vm = await resolve("vm", words);
    const all = await known.of(vm.id);
    const note = context(
      md`The service can't list snapshots: these are the ones taken from here, or restored by an id typed here. Their size is unknown.`,
    );
    if (all.length === 0) {
      const nothing = md`I know no snapshot of ${name(vm.name)}. ${name(`/vm snapshot ${vm.name}`)} takes one.`;
      return message(readable(nothing), section(nothing), note);
    }
    const rows = all
      .slice(0, mostRows)
      .map((one) => [
        one.name || "–",
        one.id || "no id: can't be restored",
        `${duration(Math.max(1000, now() - one.at))} ago`,
        one.isSafety ? "safety copy" : one.by,
        [one.specs?.cpu, one.specs?.memory, one.specs?.disk].map((n) => n ?? "?").join(" · "),
        one.measurement ? `${one.measurement.slice(0, 12)}…` : "not known",
      ]);
    const { block, shown } = shownTable(
      ["name", "id", "taken", "by", "cpu · memory · disk", "measurement"],
      rows,
    );
    const head = md`*${all.length} ${all.length === 1 ? "snapshot" : "snapshots"}* of ${name(vm.name)}, newest first`;
    return message(
      readable(head),
      section(shown < all.length ? md`${head}. The first ${shown} are shown.` : head),
      block,
      note,
    );
  },
});
