import * as z from "zod";
import type { Project } from "../../fleet/compute/compute.ts";
import { md, name as named } from "../../messages/message.ts";
import { target, wholeNumber, defineCommand } from "../../registry/define.ts";
import {
  hasMoved,
  hasSpecs,
  isUnmoved,
  keepsSpecs,
  notChangeable,
  specsChanged,
} from "../effects.ts";

const args = z
  .object({
    project: target("project").describe("the project to change"),
    name: z.string().trim().min(1).max(100).optional().meta({ isFlag: true, label: "New name" }),
    cpu: wholeNumber().optional().meta({ isFlag: true, label: "CPU" }),
    memory: wholeNumber().optional().meta({ isFlag: true }),
  })
  .refine(({ name, cpu, memory }) => name !== undefined || isResize({ cpu, memory }), {
    path: ["name"],
    error: "or specs must change: nothing was given",
  });

export const update = defineCommand({
  on: "project",
  name: "project update",
  summary: "Rename a project or change its specs; new specs may restart it",
  example: "/project update staging --cpu 4 --memory 16",
  class: "disrupt",
  protect: true,
  renames: true,
  args,
  say: { verb: "Update", doing: "Updating", done: "Updated" },
  risk: ({ target: project, input }) =>
    isResize(input)
      ? [md`⚠️ New specs may restart ${project.name}: what runs in it is interrupted.`]
      : [],
  dialog: { warn: () => [md`Empty fields stay unchanged.`] },
  effect: {
    already: (project, given) => hasFields(project, given),
    notNow: notChangeable,
    wanted: (now, before, given) =>
      now !== undefined && (hasFields(now, given) || tookHiddenSpecs(now, before, given)),
    untouched: (now, before, given) =>
      now !== undefined &&
      now.name === before?.name &&
      (hidesSpecs(now) ? isUnmoved(now, before) : keepsSpecs(now.specs, before.specs, given)),
  },
  perform: (project, { name, cpu, memory }, { compute }) => {
    const specs = isResize({ cpu, memory }) ? { cpu, memory } : undefined;
    return compute.projects.update(project.id, { name, specs });
  },
  told: (what, before, after) => {
    const specs = specsChanged(before?.specs, after?.specs);
    if (!before || !after || before.name === after.name)
      return specs === "" ? undefined : md`Updated ${what}: ${specs}`;
    return md`Renamed ${named(before.name)} to ${named(after.name)}${specs && `; ${specs}`}`;
  },
  tell: (_before, after, given) =>
    isResize(given) && after && hidesSpecs(after)
      ? md`The compute service doesn't return a project's specs, so Gatehouse can confirm only that it was updated.`
      : undefined,
});

type Given = Omit<z.output<typeof args>, "project">;

const isResize = ({ cpu, memory }: { cpu?: unknown; memory?: unknown }): boolean =>
  cpu !== undefined || memory !== undefined;

const hidesSpecs = ({ specs = {} }: Project): boolean => !isResize(specs);

/**
 * The API isn't documented to return a project's specs. Without them, a changed `updated_at` and
 * the requested name are the proof.
 */
function tookHiddenSpecs(now: Project, before: Project | undefined, given: Given): boolean {
  const isNamed = given.name === undefined || now.name === given.name;
  return hidesSpecs(now) && isNamed && hasMoved(now, before);
}

function hasFields(project: Project, { name, cpu, memory }: Given): boolean {
  return (name === undefined || project.name === name) && hasSpecs(project, { cpu, memory });
}
