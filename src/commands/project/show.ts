import * as z from "zod";
import { context, fields, message, section, table } from "../../messages/message.ts";
import { md, name } from "../../messages/text.ts";
import { target } from "../../registry/arguments.ts";
import { defineCommand } from "../../registry/define.ts";
import { byTrouble, countByStatus, statusSign } from "../status-words.ts";

const mostRows = 50;

export const show = defineCommand({
  kind: "read",
  name: "project show",
  summary: "Show a project and its VMs",
  example: "/project show payments",
  class: "read",
  args: z.object({ project: target("project").describe("the project to show") }),
  async answer({ project: words }, { compute, inventory, resolve }) {
    const found = await resolve("project", words);
    const project = await compute.projects.get(found.id);
    const vms = project.type === "TEE_VM" ? await compute.projects.vms(found.id) : [];
    await inventory.note({ project });
    const rows = [...vms]
      .toSorted(byTrouble)
      .slice(0, mostRows)
      .map((vm) => [
        vm.name,
        `${statusSign(vm.status)} ${vm.status}`,
        String(vm.specs?.cpu ?? ""),
        String(vm.specs?.memory ?? ""),
        vm.ipAddress ?? "",
      ]);
    return message(
      `${project.name} is ${project.status}`,
      section(md`${statusSign(project.status)} *${project.name}* is *${project.status}*`),
      fields([
        ["Type", md`${project.type}`],
        ["Region", md`${project.region ?? "not told"}`],
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
            table(["name", "status", "cpu", "memory", "IP address"], rows),
          ]
        : [
            section(
              project.type === "TEE_VM"
                ? md`It has no VMs.`
                : md`A project of this type has no VMs.`,
            ),
          ]),
      context(
        vms.length > mostRows
          ? md`The first ${mostRows} are shown; ${name(`/vm list ${project.name}`)} lists by status. Id ${name(project.id)}`
          : md`Id ${name(project.id)}`,
      ),
    );
  },
});
