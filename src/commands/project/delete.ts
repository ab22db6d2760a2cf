import * as z from "zod";
import { counted, firstFew, md } from "../../messages/markdown.ts";
import { target, defineCommand } from "../../registry/define.ts";
import { notChangeable } from "../effects.ts";

const maxNamed = 30;
const shown = (vm: { name: string; status: string }) => `${vm.name} (${vm.status})`;

export const deleteProject = defineCommand({
  on: "project",
  name: "project delete",
  aliases: ["rm", "remove"],
  summary: "Delete a project, its VMs, and all data; can't be undone",
  example: "/project delete staging",
  class: "destroy",
  protect: true,
  deletes: true,
  args: z.object({ project: target("project").describe("the project to delete") }),
  say: {
    verb: "Delete",
    doing: "Deleting",
    done: "Deleted",
    noun: "deletion",
    until: "it is gone",
  },
  risk: ({ target: project, vms }) => [
    md`⚠️ *Everything in ${project.name} is lost*${
      vms.length === 0
        ? "; it has no VMs"
        : `, with its ${counted(vms.length, "VM")}: ${firstFew(vms.map(shown), maxNamed)}`
    }. *This can't be undone.*`,
  ],
  dialog: {
    warn: ({ snapshots }) => [
      snapshots.length === 0
        ? md`There are no known snapshots of them.`
        : md`Known snapshots: ${firstFew(
            snapshots.map((snapshot) => snapshot.name || snapshot.id),
            maxNamed,
          )}.`,
    ],
  },
  effect: {
    notNow: notChangeable,
    wanted: (now) => now === undefined,
    mark: (now) => now?.status === "DELETING",
    untouched: (now, before) => now !== undefined && now.status === before?.status,
  },
  perform: (project, _args, { compute }) => compute.projects.delete(project.id),
});
