import * as z from "zod";
import type { KnownVm } from "../../inventory/inventory.ts";
import { context, message, readable, section } from "../../messages/message.ts";
import { lines, md, name, plain } from "../../messages/text.ts";
import { flagOnly, target } from "../../registry/arguments.ts";
import { defineCommand } from "../../registry/define.ts";
import { inventoryAge } from "../inventory-age.ts";
import { shownTable } from "../shown-table.ts";
import { countByStatus, mostTroubled, statusSign } from "../status-words.ts";

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
    const only = wanted === undefined ? md`` : md` with status ${plain(wanted)}`;
    if (vms.length === 0) {
      const way = all.length > 0 ? md`There are ${countByStatus(all)}.` : wayOut(within?.name);
      const nothing = md`No VMs${where}${only}. ${way}`;
      return message(readable(nothing), section(nothing), context(age));
    }
    const { block, shown } = shownTable(
      ["name", "status", "project", "region", "cpu", "memory"],
      mostTroubled(vms, mostRows).map(row),
    );
    const head = md`*${vms.length} ${vms.length === 1 ? "VM" : "VMs"}*${where}${only}: ${countByStatus(vms)}`;
    return message(
      readable(head),
      section(head),
      block,
      context(
        lines(
          vms.length > shown &&
            md`The first ${shown} of ${vms.length} are shown. ${name("/vm list <project>")} or ${name("--status ERROR")} narrows it.`,
          age,
        ),
      ),
    );
  },
});

function wayOut(projectName: string | undefined) {
  return projectName === undefined
    ? md`${name("/project list")} shows the projects; those of type TEE_VM have VMs.`
    : md`${name("/vm list")} shows those of all projects.`;
}

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
