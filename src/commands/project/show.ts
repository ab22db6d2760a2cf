import * as z from "zod";
import { UserError } from "../../errors.ts";
import { context, fields, message, readable, section } from "../../messages/message.ts";
import { md, name, plain } from "../../messages/text.ts";
import { target } from "../../registry/arguments.ts";
import { defineCommand } from "../../registry/define.ts";
import { lastKnown, unlessAway } from "../last-known.ts";
import { shownTable } from "../shown-table.ts";
import { byTrouble, countByStatus, firstOf, statusSign } from "../status-words.ts";

const mostRows = 50;

export const show = defineCommand({
  kind: "read",
  name: "project show",
  summary: "Show a project and its VMs",
  example: "/project show payments",
  class: "read",
  args: z.object({ project: target("project").describe("the project to show") }),
  async answer({ project: words }, { compute, inventory, resolve, now }) {
    const found = await resolve("project", words);
    const project = await unlessAway(compute.projects.get(found.id));
    const read = project?.type === "TEE_VM" ? await unlessAway(compute.projects.vms(found.id)) : [];
    if (!project || !read) {
      const known = await inventory.findProject(found.id);
      if (!("found" in known))
        throw new UserError(`The service can't be reached, and I know nothing of ${found.name}.`);
      const all = await inventory.vms({ projectId: found.id });
      return lastKnown({ ...known.found, vms: all }, await inventory.state(), now());
    }
    const vms = read;
    await inventory.note({ project });
    const { block, shown } = shownTable(
      ["name", "status", "cpu", "memory", "IP address"],
      firstOf(vms, mostRows, byTrouble).map((vm) => [
        vm.name,
        `${statusSign(vm.status)} ${vm.status}`,
        String(vm.specs?.cpu ?? ""),
        String(vm.specs?.memory ?? ""),
        vm.ipAddress ?? "",
      ]),
    );
    const head = md`${statusSign(project.status)} *${plain(project.name)}* is *${plain(project.status)}*`;
    return message(
      readable(head),
      section(head),
      fields([
        ["Type", md`${plain(project.type)}`],
        ["Region", md`${plain(project.region ?? "not told")}`],
        project.createdAt
          ? ["Created", md`${project.createdAt.slice(0, 16).replace("T", " ")} UTC`]
          : undefined,
        project.updatedAt
          ? ["Changed", md`${project.updatedAt.slice(0, 16).replace("T", " ")} UTC`]
          : undefined,
      ]),
      ...(vms.length > 0
        ? [
            section(md`*${vms.length} ${vms.length === 1 ? "VM" : "VMs"}*: ${countByStatus(vms)}`),
            block,
          ]
        : [
            section(
              project.type === "TEE_VM"
                ? md`It has no VMs.`
                : md`A project of this type has no VMs.`,
            ),
          ]),
      context(
        vms.length > shown
          ? md`The first ${shown} of ${vms.length} are shown; ${name(`/vm list ${plain(project.name, 60)} --status ERROR`)} narrows it. Id ${name(project.id)}`
          : md`Id ${name(project.id)}`,
      ),
    );
  },
});
