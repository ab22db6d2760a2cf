import * as z from "zod";
import type { Project } from "../../compute/compute.ts";
import { lines, md, name as named } from "../../messages/text.ts";
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
    wanted: (now, before, given) =>
      now !== undefined && (hasFields(now, given) || tookHiddenSpecs(now, before, given)),
    untouched: (now, before, given) =>
      now !== undefined &&
      now.name === before?.name &&
      (hidesSpecs(now)
        ? now.updatedAt !== undefined && now.updatedAt === before.updatedAt
        : keepsSpecs(now.specs, before.specs, given)),
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
  tell: (before, after, given) =>
    lines(
      before && after && before.name !== after.name
        ? md`${named(before.name)} is called ${named(after.name)} now.`
        : undefined,
      (given.cpu !== undefined || given.memory !== undefined) && after && hidesSpecs(after)
        ? md`The service doesn't show a project's specs: that it was updated is all that can be read.`
        : undefined,
    ),
});

type Given = { name?: string | undefined; cpu?: number | undefined; memory?: number | undefined };

function hidesSpecs({ specs }: Project): boolean {
  return specs?.cpu === undefined && specs?.memory === undefined;
}

/**
 * The document doesn't say that records show specs. Where they are hidden, `updated_at`, which it does list, is the mark:
 * it moved since the send, and the name is as asked for.
 */
function tookHiddenSpecs(now: Project, before: Project | undefined, given: Given): boolean {
  const isNamed = given.name === undefined || now.name === given.name;
  const hasMoved =
    now.updatedAt !== undefined &&
    before?.updatedAt !== undefined &&
    now.updatedAt !== before.updatedAt;
  return hidesSpecs(now) && isNamed && hasMoved;
}

/** Whether the project shows what was asked for. */
function hasFields(project: Project, given: Given): boolean {
  if (given.name !== undefined && project.name !== given.name) return false;
  if (given.cpu !== undefined && project.specs?.cpu !== given.cpu) return false;
  return given.memory === undefined || project.specs?.memory === given.memory;
}
