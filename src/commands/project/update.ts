import * as z from "zod";
import type { Project } from "../../fleet/compute/compute.ts";
import { md, name as named } from "../../messages/markdown.ts";
import { target, wholeNumber, defineCommand } from "../../registry/define.ts";
import { hasSpecs, keepsSpecs, notChangeable, specsChanged } from "../effects.ts";

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
    wanted: (now, _before, given) =>
      now !== undefined && (hasFields(now, given) || (hidesSpecs(now) && isNamed(now, given))),
    hides: (now, given) => isResize(given) && now !== undefined && hidesSpecs(now),
    untouched: (now, before, given) =>
      now !== undefined &&
      now.name === before?.name &&
      !hidesSpecs(now) &&
      keepsSpecs(now.specs, before.specs, given),
  },
  perform: (project, { name, cpu, memory }, { compute }) => {
    const specs = isResize({ cpu, memory }) ? { cpu, memory } : undefined;
    return compute.projects.update(project.id, { name, specs });
  },
  describeResult: (targetName, before, after) => {
    const specs = specsChanged(before?.specs, after?.specs);
    if (!before || !after || before.name === after.name)
      return specs === "" ? undefined : md`Updated ${targetName}: ${specs}`;
    return md`Renamed ${named(before.name)} to ${named(after.name)}${specs && `; ${specs}`}`;
  },
  addToResult: (_before, after, given) =>
    isResize(given) && after && hidesSpecs(after)
      ? md`The compute service doesn't return a project's specs, so Gatehouse can confirm only that it accepted them.`
      : undefined,
});

type Given = Omit<z.output<typeof args>, "project">;

const isResize = ({ cpu, memory }: { cpu?: unknown; memory?: unknown }): boolean =>
  cpu !== undefined || memory !== undefined;

/** The API isn't documented to return a project's specs. */
const hidesSpecs = ({ specs = {} }: Project): boolean => !isResize(specs);

const isNamed = (project: Project, { name }: Given): boolean =>
  name === undefined || project.name === name;

const hasFields = (project: Project, given: Given): boolean =>
  isNamed(project, given) && hasSpecs(project, given);
