import * as z from "zod";
import type { NewProject } from "../../compute/compute.ts";
import { md } from "../../messages/text.ts";
import { flagOnly, wholeNumber } from "../../registry/arguments.ts";
import { defineCommand } from "../../registry/define.ts";

const types = ["TEE_VM", "GIT_DEPLOY", "CONTAINER"] as const;
const gitUrl = z.string().regex(/^(https:\/\/|ssh:\/\/|git@)[^\s]{3,290}$/, {
  error: "must be a repository's address, https://… or git@…",
});

const args = z
  .object({
    name: flagOnly(z.string().trim().min(1).max(100, { error: "must be at most 100 characters" })),
    type: z.enum(types).meta({ flagOnly: true }),
    region: flagOnly(z.string().trim().min(1).max(60)),
    cpu: wholeNumber().optional().meta({ flagOnly: true, label: "CPU" }),
    memory: wholeNumber().optional().meta({ flagOnly: true }),
    disk: wholeNumber().optional().meta({ flagOnly: true }),
    gitUrl: gitUrl.optional().meta({ flagOnly: true, label: "Repository" }),
    gitBranch: z.string().max(200).optional().meta({ flagOnly: true, label: "Branch" }),
    buildCommand: z.string().max(300).optional().meta({ flagOnly: true }),
    startCommand: z.string().max(300).optional().meta({ flagOnly: true }),
  })
  .superRefine((given, context) => {
    for (const [key, text] of Object.entries(missing(given))) {
      context.addIssue({ code: "custom", path: [key], message: text });
    }
  });

export const create = defineCommand({
  kind: "change",
  on: "new-project",
  name: "project create",
  summary: "Make a project; a form asks for what is missing",
  example: "/project create --name staging-2 --type TEE_VM --region eu-west",
  class: "change",
  args,
  say: { verb: "Create", doing: "Creating", done: "Created" },
  dialog: {
    showWhen: {
      cpu: ["type", "TEE_VM"],
      memory: ["type", "TEE_VM"],
      disk: ["type", "TEE_VM"],
      gitUrl: ["type", "GIT_DEPLOY"],
      gitBranch: ["type", "GIT_DEPLOY"],
      buildCommand: ["type", "GIT_DEPLOY"],
      startCommand: ["type", "GIT_DEPLOY"],
    },
  },
  effect: {
    notNow: (named) => {
      const [one] = named;
      if (!one) return undefined;
      return {
        text: `There is a project called ${one.name} already.`,
        hint: "Choose another name.",
      };
    },
    wanted: (now, before) =>
      now?.length === 1 &&
      (before?.length ?? 0) === 0 &&
      now[0]?.status !== "ERROR" &&
      now[0]?.status !== "DELETING",
    mark: (now) => (now?.length ?? 0) > 0,
    // The list itself is the control read: it answers, and the name is not in it
    untouched: (now, before) => now?.length === 0 && before?.length === 0,
    again: "never",
  },
  perform: (_project, given, { compute }) => compute.projects.create(newProject(given)),
  tell: (_before, after) =>
    after?.[0] ? md`${after[0].type} in ${after[0].region ?? "its region"}.` : undefined,
});

type Given = {
  name: string;
  type: (typeof types)[number];
  region: string;
  cpu?: number | undefined;
  memory?: number | undefined;
  disk?: number | undefined;
  gitUrl?: string | undefined;
  gitBranch?: string | undefined;
  buildCommand?: string | undefined;
  startCommand?: string | undefined;
};

/** What a type asks for and doesn't get, and what it can't take. */
export function missing(given: Pick<Given, "type"> & Partial<Given>): Record<string, string> {
  const problems: Record<string, string> = {};
  const specs = ["cpu", "memory", "disk"] as const;
  const git = ["gitUrl", "gitBranch", "buildCommand", "startCommand"] as const;
  if (given.type === "TEE_VM") {
    for (const key of specs) if (given[key] === undefined) problems[key] = "is needed for TEE_VM";
  } else
    for (const key of specs)
      if (given[key] !== undefined) problems[key] = `must be left away: only TEE_VM has it`;
  if (given.type === "GIT_DEPLOY") {
    if (given.gitUrl === undefined) problems["gitUrl"] = "is needed for GIT_DEPLOY";
  } else
    for (const key of git)
      if (given[key] !== undefined) problems[key] = `must be left away: only GIT_DEPLOY has it`;
  return problems;
}

function newProject(given: Given): NewProject {
  const {
    name,
    type,
    region,
    cpu,
    memory,
    disk,
    gitUrl: url,
    gitBranch,
    buildCommand,
    startCommand,
  } = given;
  if (type === "TEE_VM") return { name, type, region, specs: defined({ cpu, memory, disk }) };
  if (type === "GIT_DEPLOY") {
    return {
      name,
      type,
      region,
      gitConfig: defined({ url, branch: gitBranch, buildCommand, startCommand }),
    };
  }
  return { name, type, region };
}

/** The service gets what was given, and nothing else. */
function defined<V>(all: Readonly<Record<string, V | undefined>>): Record<string, V> {
  return Object.fromEntries(
    Object.entries(all).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])),
  );
}
