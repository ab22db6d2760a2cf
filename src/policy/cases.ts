import { parse } from "yaml";
import * as z from "zod";
import { messageOf, UserError } from "../errors.ts";
import type { VoteNeed } from "./vote-needs.ts";

/** One row of a table of who may do what. */
export interface PolicyCase {
  who: string;
  groups: readonly string[];
  channel: string;
  /** With a dot. */
  command: string;
  target: string | undefined;
  /** Of a rename. */
  newName: string | undefined;
  /** Names of the VMs in a project: rules hold for those too. Undefined where nobody said. */
  vms: readonly string[] | undefined;
}

export interface PolicyDecision {
  allowed: boolean;
  /** Approvals that it needs; 0 when refused. */
  approvals: number;
  /** Of whom; empty when refused. */
  votes: readonly VoteNeed[];
  /** In words, with the lines of the file. */
  why: string;
}

const caseSchema = z.strictObject({
  who: z.string(),
  groups: z.array(z.string()).default([]),
  in: z.string().default(""),
  /** `vm.restore payments/db-1`, `project.update pay --name payments --vms db-1,web-1` */
  run: z.string(),
  expect: z.enum(["allowed", "refused"]),
  approvals: z.int().optional(),
  /** Of whom, as in `approvals[].votes`. */
  votes: z
    .array(z.strictObject({ from: z.array(z.string()), required: z.int().default(1) }))
    .optional(),
});

/** The rows that are decided otherwise than the table says, in words. Throws UserError for what is no table. */
export function differencesFrom(
  table: { text: string; path: string },
  decide: (asked: PolicyCase) => PolicyDecision,
): { cases: number; differences: readonly string[] } {
  const read = z.array(caseSchema).safeParse(yamlOf(table));
  if (!read.success) throw new UserError(`${table.path}: ${z.prettifyError(read.error)}`);
  const differences = read.data.flatMap((one, index) => {
    const { who, groups, approvals, votes } = one;
    const is = decide({ who, groups, channel: one.in, ...readRun(one.run) });
    const fits =
      one.expect === (is.allowed ? "allowed" : "refused") &&
      (approvals === undefined || approvals === is.approvals) &&
      (votes === undefined || inWords(votes) === inWords(is.votes));
    const wanted = [
      one.expect,
      ...(approvals === undefined
        ? []
        : [`with ${approvals} ${approvals === 1 ? "approval" : "approvals"}`]),
      ...(votes === undefined ? [] : [`by ${inWords(votes)}`]),
    ].join(", ");
    return fits
      ? []
      : [`case ${index + 1}: ${who} ${one.run}\n  expected ${wanted}\n  but is   ${is.why}`];
  });
  return { cases: read.data.length, differences };
}

/** A new name may have spaces. */
function readRun(run: string): Pick<PolicyCase, "command" | "target" | "newName" | "vms"> {
  const [words = "", ...options] = run.split(/ --(?=(?:name|vms) )/);
  const [command = "", target] = words.split(" ");
  const valueOf = (key: string) =>
    options.find((one) => one.startsWith(`${key} `))?.slice(key.length + 1);
  return { command, target, newName: valueOf("name"), vms: valueOf("vms")?.split(",") };
}

/** In any order. */
function inWords(votes: readonly VoteNeed[]): string {
  return votes
    .map(({ from, required }) => `${required} of ${from.toSorted().join(" ")}`)
    .toSorted()
    .join(" and ");
}

function yamlOf({ text, path }: { text: string; path: string }): unknown {
  try {
    return parse(text, { maxAliasCount: 100 });
  } catch (error) {
    throw new UserError(`${path}: ${messageOf(error)}`);
  }
}
