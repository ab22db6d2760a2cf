import * as z from "zod";
import type { NewProject } from "../../fleet/compute/compute.ts";
import { firstFew, type Markdown, md } from "../../messages/markdown.ts";
import { wholeNumber, defineCommand } from "../../registry/define.ts";

const types = ["TEE_VM", "GIT_DEPLOY", "CONTAINER"] as const;
/**
 * The address of a repository. It is stored and shown on cards, so one with a token, a password, or
 * a query is refused.
 */
const gitUrl = z
  .string()
  .max(300)
  .regex(/^(https:\/\/[^\s@?#/]+(\/[^\s?#]*)?|(ssh:\/\/([\w.-]+@)?|git@)[^\s@?#]{3,})$/, {
    error:
      "must be a repository's address without a token or password: https://…, ssh://…, or git@…",
  });

const args = z
  .object({
    name: z.string().trim().min(1).max(100).meta({ isFlag: true }),
    type: z.enum(types).meta({ isFlag: true }),
    region: z
      .string()
      .trim()
      .min(1)
      .max(60)
      .meta({ isFlag: true, picker: "region", placeholder: "One in use, or type another" }),
    cpu: wholeNumber().optional().meta({ isFlag: true, label: "CPU" }),
    memory: wholeNumber().optional().meta({ isFlag: true }),
    disk: wholeNumber().optional().meta({ isFlag: true }),
    gitUrl: gitUrl.optional().meta({ isFlag: true, label: "Repository" }),
    gitBranch: z.string().max(200).optional().meta({ isFlag: true, label: "Branch" }),
    buildCommand: z.string().max(300).optional().meta({ isFlag: true }),
    startCommand: z.string().max(300).optional().meta({ isFlag: true }),
  })
  .superRefine((given, context) => {
    for (const [key, text] of Object.entries(missing(given))) {
      context.addIssue({ code: "custom", path: [key], message: text });
    }
  });

/** The type of project to which each argument belongs. */
const typeOf = {
  cpu: "TEE_VM",
  memory: "TEE_VM",
  disk: "TEE_VM",
  gitUrl: "GIT_DEPLOY",
  gitBranch: "GIT_DEPLOY",
  buildCommand: "GIT_DEPLOY",
  startCommand: "GIT_DEPLOY",
} as const;

export const create = defineCommand({
  on: "new-project",
  name: "project create",
  aliases: ["new", "add"],
  summary: "Create a project; a form asks for what is missing",
  example: "/project create --name staging-2 --type TEE_VM --region eu-west",
  class: "change",
  // A protected name can't be given to a project from Slack, as in a rename.
  protect: true,
  args,
  say: { verb: "Create", doing: "Creating", done: "Created", noun: "creation" },
  next: [{ label: "Show", command: "project.show" }],
  dialog: {
    warn: ({ input, regions = [] }) => [
      ...(input["type"] === undefined ? [md`The type decides what else is needed.`] : []),
      ...regionDoubt(input["region"], regions),
    ],
    needed: ["cpu", "memory", "disk", "gitUrl"],
    watches: ["region"],
    showWhen: Object.fromEntries(
      Object.entries(typeOf).map(([key, type]) => [key, ["type", type] as const]),
    ),
  },
  effect: {
    notNow: ([namesake]) =>
      namesake && {
        text: `A project called ${namesake.name} already exists.`,
        hint: "Choose another name.",
      },
    wanted: (now) =>
      now?.length === 1 && now[0]?.status !== "ERROR" && now[0]?.status !== "DELETING",
    mark: (now) => (now?.length ?? 0) > 0,
    // An empty list is proof: reading the list also shows that the service answers.
    untouched: (now) => now?.length === 0,
  },
  perform: (_project, given, { compute }) => compute.projects.create(newProject(given)),
  addToResult: (_before, after) =>
    after?.[0] ? md`${after[0].type} in ${after[0].region ?? "its region"}.` : undefined,
});

type Given = z.output<typeof args>;

const maxRegions = 8;

/** Warns about a region where nothing exists: it may be right, but is more likely a slip. */
function regionDoubt(wanted: unknown, regions: readonly string[]): Markdown[] {
  if (typeof wanted !== "string" || regions.length === 0 || regions.includes(wanted)) return [];
  const known = firstFew(regions, maxRegions);
  return [
    md`⚠️ *Is the region ${wanted} right?* Nothing that Gatehouse knows is there. In use: ${known}.`,
  ];
}

/** Problems by argument: what a type requires, and what it doesn't have. */
export function missing(given: Pick<Given, "type"> & Partial<Given>): Record<string, string> {
  const problems: Record<string, string> = {};
  for (const key of Object.keys(typeOf) as (keyof typeof typeOf)[]) {
    const type = typeOf[key];
    const isNeeded = type === "TEE_VM" || key === "gitUrl";
    if (given.type !== type && given[key] !== undefined)
      problems[key] = `must be omitted: only ${type} has it`;
    if (given.type === type && isNeeded && given[key] === undefined)
      problems[key] = `is required for ${type}`;
  }
  return problems;
}

function newProject({ name, type, region, cpu, memory, disk, ...git }: Given): NewProject {
  if (type === "TEE_VM") return { name, type, region, specs: { cpu, memory, disk } };
  if (type === "CONTAINER") return { name, type, region };
  const { gitUrl: url, gitBranch: branch, buildCommand, startCommand } = git;
  return { name, type, region, gitConfig: { url, branch, buildCommand, startCommand } };
}
