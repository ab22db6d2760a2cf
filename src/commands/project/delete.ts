import * as z from "zod";
import { lines, md, name } from "../../messages/text.ts";
import { target } from "../../registry/arguments.ts";
import { defineCommand } from "../../registry/define.ts";
import { notChangeable } from "./project-effects.ts";

const mostNamed = 30;

export const deleteProject = defineCommand({
  kind: "change",
  on: "project",
  name: "project delete",
  summary: "Delete a project with its VMs and all data, for ever",
  example: "/project delete staging",
  class: "destroy",
  args: z.object({ project: target("project").describe("the project to delete") }),
  say: { verb: "Delete", doing: "Deleting", done: "Deleted" },
  dialog: {
    warn: ({ vms, snapshots }) => [
      md`⚠️ This can't be undone. Everything in the project is lost:`,
      vms.length === 0
        ? md`• it has no VMs`
        : lines(
            ...vms.slice(0, mostNamed).map((vm) => md`• ${name(vm.name)}, ${vm.status}`),
            vms.length > mostNamed && md`• and ${vms.length - mostNamed} more VMs`,
          ),
      snapshots.length === 0
        ? md`I know no snapshots of them.`
        : md`Snapshots that I know of: ${snapshots
            .slice(0, mostNamed)
            .map((one) => one.name || one.id)
            .join(", ")}.`,
    ],
  },
  effect: {
    notNow: notChangeable,
    wanted: (now) => now === undefined,
    mark: (now) => now?.status === "DELETING",
    untouched: (now, before) => now !== undefined && now.status === before?.status,
    again: "never",
  },
  perform: (project, _args, { compute }) => compute.projects.delete(project.id),
});
