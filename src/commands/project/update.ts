import * as z from "zod";
import type { Project } from "../../compute/compute.ts";
import { md, name as named } from "../../messages/text.ts";
import { target, wholeNumber } from "../../registry/arguments.ts";
import { defineCommand } from "../../registry/define.ts";
import { keepsSpecs } from "../keeps-specs.ts";
import { notChangeable } from "./project-effects.ts";

const args = z
  .object({
    project: target("project").describe("the project to change"),
    name: z
      .string()
      .trim()
      .min(1)
      .max(100, { error: "must be at most 100 characters" })
      .optional()
      .meta({ flagOnly: true, label: "New name" }),
    cpu: wholeNumber().optional().meta({ flagOnly: true, label: "CPU" }),
    memory: wholeNumber().optional().meta({ flagOnly: true }),
  })
  .superRefine(({ name, cpu, memory }, context) => {
    if (name === undefined && cpu === undefined && memory === undefined) {
      context.addIssue({
        code: "custom",
        path: ["name"],
        message: "or specs must change: nothing was given",
      });
    }
  });

export const update = defineCommand({
  kind: "change",
  on: "project",
  name: "project update",
  summary: "Rename a project or change its specs; specs may restart it",
  example: "/project update staging --cpu 4 --memory 16",
  class: "disrupt",
  args,
  say: { verb: "Update", doing: "Updating", done: "Updated" },
  dialog: {
    warn: ({ input }) => [
      md`What is left empty stays as it is.`,
      ...(input["cpu"] !== undefined || input["memory"] !== undefined
        ? [md`⚠️ Changing specs may restart the project: what runs in it is interrupted.`]
        : []),
    ],
  },
  effect: {
    already: (project, given) => hasFields(project, given),
    notNow: notChangeable,
    wanted: (now, _before, given) => now !== undefined && hasFields(now, given),
    untouched: (now, before, given) =>
      now !== undefined && now.name === before?.name && keepsSpecs(now.specs, before.specs, given),
    again: "once",
  },
  perform: (project, { name, cpu, memory }, { compute }) =>
    compute.projects.update(project.id, {
      ...(name === undefined ? {} : { name }),
      ...(cpu === undefined && memory === undefined
        ? {}
        : {
            specs: {
              ...(cpu === undefined ? {} : { cpu }),
              ...(memory === undefined ? {} : { memory }),
            },
          }),
    }),
  tell: (before, after) =>
    before && after && before.name !== after.name
      ? md`${named(before.name)} is called ${named(after.name)} now.`
      : undefined,
});

/**
 * Whether the project shows what was asked for. The service need not show specs in its record: then only the name can be
 * confirmed, and specs alone never are.
 */
function hasFields(
  project: Project,
  given: { name?: string | undefined; cpu?: number | undefined; memory?: number | undefined },
): boolean {
  if (given.name !== undefined && project.name !== given.name) return false;
  if (given.cpu !== undefined && project.specs?.cpu !== given.cpu) return false;
  return given.memory === undefined || project.specs?.memory === given.memory;
}
