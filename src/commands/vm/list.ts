import * as z from "zod";
import type { KnownVm } from "../../inventory/inventory.ts";
import { csv } from "../../messages/csv.ts";
import { buttons, context, message, readable, section } from "../../messages/message.ts";
import { lines, md, name, plain } from "../../messages/text.ts";
import { flagOnly, target, wholeNumber } from "../../registry/arguments.ts";
import { type Answer, defineCommand } from "../../registry/define.ts";
import { inventoryAge } from "../inventory-age.ts";
import { shownTable } from "../shown-table.ts";
import { countByStatus, firstOf, statusSign } from "../status-words.ts";
import { type VmOrder, vmOrders } from "../vm-order.ts";

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
    sort: flagOnly(
      z
        .enum(Object.keys(vmOrders) as VmOrder[])
        .optional()
        .describe("the largest or newest first; by default those in trouble"),
    ),
    page: wholeNumber(10_000).optional().meta({ flagOnly: true, description: "which page of 50" }),
    csv: z
      .boolean()
      .optional()
      .meta({ flagOnly: true, description: "send me all of them as a file" }),
  }),
  async answer(
    { project, status, sort = "trouble", page = 1, csv: asFile },
    { inventory, resolve, now },
  ) {
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
    const pages = Math.ceil(vms.length / mostRows);
    if (page > pages) {
      const none = md`There ${pages === 1 ? "is one page" : `are ${pages} pages`}. ${name("/vm list --page 1")} shows the first.`;
      return message(readable(none), section(none));
    }
    if (asFile) return asCsv(vms, sort);
    const from = (page - 1) * mostRows;
    const { block, shown } = shownTable(
      columns,
      firstOf(vms, page * mostRows, vmOrders[sort])
        .slice(from)
        .map(row),
    );
    const head = md`*${vms.length} ${vms.length === 1 ? "VM" : "VMs"}*${where}${only}: ${countByStatus(vms)}`;
    return message(
      readable(head),
      section(head),
      block,
      context(
        lines(
          vms.length > shown &&
            md`${from + 1} to ${from + shown} of ${vms.length} are shown. ${name("/vm list <project>")} or ${name("--status ERROR")} narrows it${page < pages ? md`, ${name(`--page ${page + 1}`)} goes on` : ""}.`,
          age,
        ),
      ),
      vms.length > shown
        ? buttons([
            {
              label: "All as a file",
              action: "run:vm.list:csv",
              value: csvValue({ project, status, sort }),
            },
          ])
        : undefined,
    );
  },
});

const columns = ["name", "status", "project", "region", "cpu", "memory"];

/** What is undefined isn't said. */
function csvValue(asked: {
  project: string | undefined;
  status: string | undefined;
  sort: VmOrder;
}): string {
  return JSON.stringify({ csv: true, ...asked });
}

/** A file can't be ephemeral, so it comes as a direct message. */
function asCsv(vms: readonly KnownVm[], sort: VmOrder): Answer {
  const text = md`All ${vms.length} VMs come as a file in your direct messages.`;
  const rows = [...vms].toSorted(vmOrders[sort]).map((vm) => [...row(vm), vm.id]);
  const content = csv([[...columns, "id"], ...rows]);
  return {
    message: message(readable(text), section(text)),
    file: { name: "vms.csv", title: "VMs", content },
  };
}

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
