import * as z from "zod";
import type { KnownVm } from "../../inventory/inventory.ts";
import { context, message, section, table } from "../../messages/message.ts";
import { lines, md, name } from "../../messages/text.ts";
import { flagOnly, target } from "../../registry/arguments.ts";
import { defineCommand } from "../../registry/define.ts";
import { inventoryAge } from "../inventory-age.ts";
import { byTrouble, countByStatus, statusSign } from "../status-words.ts";

const mostRows = 50;

export const list = defineCommand({
  kind: "read",
  name: "vm list",
  summary: "List VMs, those in trouble first",
  example: "/vm list payments --status RUNNING",
  class: "read",
  args: z.object({
    project: target("project").optional().describe("only the VMs of this project"),
    status: flagOnly(z.string().max(40).optional().describe("only VMs in this status")),
  }),
  async answer({ project, status }, { inventory, resolve, now }) {
    const within = project === undefined ? undefined : await resolve("project", project);
    const all = await inventory.vms(within ? { projectId: within.id } : {});
    const wanted = status?.toUpperCase();
    const vms = wanted === undefined ? all : all.filter((vm) => vm.status.toUpperCase() === wanted);
    const age = inventoryAge(await inventory.state(), now());
    const where = within ? md` in ${name(within.name)}` : md``;
    const only = wanted === undefined ? md`` : md` with status ${wanted}`;
    if (vms.length === 0) {
      const others = all.length === 0 ? md`` : md` There are ${countByStatus(all)}.`;
      return message("No VMs", section(md`No VMs${where}${only}.${others}`), context(age));
    }
    const shown = [...vms].toSorted(byTrouble).slice(0, mostRows);
    const head = md`*${vms.length} ${vms.length === 1 ? "VM" : "VMs"}*${where}${only}: ${countByStatus(vms)}`;
    return message(
      `${vms.length} VMs: ${countByStatus(vms)}`,
      section(head),
      table(["name", "status", "project", "region", "cpu", "memory"], shown.map(row)),
      context(
        lines(
          vms.length > shown.length &&
            md`The first ${shown.length} of ${vms.length} are shown. ${name("/vm list <project>")} or ${name("--status ERROR")} narrows it.`,
          age,
        ),
      ),
    );
  },
});

function row(vm: KnownVm): string[] {
  return [
    vm.name,
    `${statusSign(vm.status)} ${vm.status}`,
    vm.projectName,
    vm.region ?? "",
    String(vm.specs?.cpu ?? ""),
    String(vm.specs?.memory ?? ""),
  ];
}
