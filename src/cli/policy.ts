import { dirname } from "node:path";
import { parse } from "yaml";
import * as z from "zod";
import { trustAuthorities } from "../config/authorities.ts";
import type { SlackAccess } from "../config/config.ts";
import {
  type Policy,
  type ReadPolicy,
  mostPolicyBytes,
  parsePolicy,
} from "../config/policy-file.ts";
import { type PolicyTerms, callersIn, countedSections } from "../config/policy-section.ts";
import { withJson } from "../api/schemas.ts";
import { UserError, messageOf } from "../errors.ts";
import { counted } from "../messages/markdown.ts";
import { allRights, listsFor, rightsOver, scopeOfView, whoAre } from "../core/permit/access.ts";
import { type VoteNeed, mayNeedApproval } from "../core/permit/approval-rule.ts";
import { ownerOf } from "../core/permit/refusal.ts";
import { mayPropose } from "../core/permit/service-rights.ts";
import {
  type Command,
  type Target,
  dottedName,
  isChange,
  targetArgument,
} from "../registry/define.ts";
import type { Input } from "../registry/invocation.ts";
import { readRegularSync } from "../regular-file.ts";
import { groupsNamedIn } from "../slack/people/user-groups.ts";
import { nearest } from "../text/nearest.ts";
import { UsageError, runProgram } from "../text/terminal.ts";
import { type JudgePolicy, secretFindings } from "../operate/checks/api.ts";
import type { Finding } from "../messages/finding.ts";
import { judgeFolder, lookAtFolder } from "../operate/checks/folders.ts";
import { judgeNames, judgeRules, lookAtPolicy } from "../operate/checks/policy.ts";
import { useProxies } from "../operate/use-proxies.ts";
import { askAndPermit } from "../core/permit/permit.ts";

export const policyUsage = `usage: node gatehouse.mjs policy <what>
  check [file]                  every problem of the file, with its line; with SLACK_BOT_TOKEN, also groups, people, and
                                channels that Slack doesn't have
  explain --as <user> [--groups <S1,S2>] [--in <channel>] <command> [<target>] [--name <new name>] [--vms <vm1,vm2>]
                                whether that person may run it there, who must approve, and which lines decide;
                                a target is project/vm or project, as in vm.stop payments/db-1 or, for a new
                                name, project.update pay --name payments; --vms names the VMs of a project, which
                                rules hold for too; without --groups, Slack says which groups they are in, where
                                SLACK_BOT_TOKEN is set; --as services.<name> asks what that program may read or propose
  test <cases.yml>              compares the file with a table of cases: who, groups, in, run, expect, approvals, votes
  --file <file>                 the file, default GATEHOUSE_CONFIG or gatehouse.yml`;

interface Terminal {
  /** The file to read, unless an option names another one. */
  file: string;
  write: (text: string) => void;
  /** Gets what isn't a result. */
  complain?: (text: string) => void;
  /** How to ask Slack, or why it can't be asked. */
  slack: SlackAccess | string;
  commands: readonly Command[];
  /** The commands and sections that gatehouse.yml can name. */
  terms: PolicyTerms;
  judgePolicy: JudgePolicy;
  /**
   * Judges the secret in a variable: a sentence about what is wrong with it. Undefined when this
   * environment has no API.
   */
  secretProblem?: ((variable: string) => string | undefined) | undefined;
}

/** The team of everyone in a terminal, where each person counts as a full member. */
const ourTeamId = "T0";

const word = { type: "string" } as const;
const flags = { as: word, groups: word, in: word, file: word, name: word, vms: word };

/**
 * `policy …` in a terminal: what gatehouse.yml decides. Only Slack is asked, and only for what it
 * alone knows. Resolves with 0 as expected, 1 problems or differences, 64 wrong arguments.
 */
export function runPolicy(words: readonly string[], terminal: Terminal): Promise<number> {
  const { write, complain = write, slack } = terminal;
  if (typeof slack !== "string") {
    trustAuthorities(slack.authorities);
    if (slack.proxies) useProxies(slack.proxies);
  }
  const program = { usage: policyUsage, options: flags, failed: 1, complain };
  return runProgram(words, program, async ({ values, positionals: [verb = "", ...rest] }) => {
    if (!["check", "explain", "test"].includes(verb)) throw new UsageError();
    const file = values.file ?? (verb === "check" ? rest[0] : undefined) ?? terminal.file;
    const read = readPolicy(file, terminal);
    if ("problems" in read) {
      // They are what a check is asked for. To the others they are an error.
      if (verb !== "check") throw new UserError(read.problems.join("\n"));
      write(read.problems.map((problem) => `${problem}\n`).join(""));
      return 1;
    }
    if (verb === "check") return check(read, terminal);
    const { as: who, in: channel = "", name: newName } = values;
    const [first, target] = rest;
    if (first === undefined) throw new UsageError();
    if (verb === "test") return test(first, read, terminal);
    if (who === undefined) throw new UsageError();
    const { groups, note } = await groupsOf(who, values.groups, read, terminal);
    const vms = values.vms?.split(",");
    const decision = decide({ who, groups, channel, command: first, target, newName, vms }, read);
    write(`${decision.why}\n${note}`);
    return decision.allowed ? 0 : 1;
  });
}

interface PolicyFile extends ReadPolicy {
  path: string;
  commands: readonly Command[];
  /** `(gatehouse.yml line 3)`, without the line when the file has nothing at that place. */
  line(at: readonly PropertyKey[]): string;
}

function readPolicy(
  path: string,
  { commands, terms }: Pick<Terminal, "commands" | "terms">,
): PolicyFile | { problems: readonly string[] } {
  const read = parsePolicy(readText(path), path, terms);
  if ("problems" in read) return read;
  const line = (at: readonly PropertyKey[]) => {
    const number = read.lineOf(at);
    return number === undefined ? `(${path})` : `(${path} line ${number})`;
  };
  return { path, commands, line, ...read };
}

const readText = (path: string) =>
  orComplain(`${path} can't be read`, () => readRegularSync(path, mostPolicyBytes).toString());

/** Returns what `read` returns, and turns what it throws into a UserError. */
function orComplain<T>(start: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new UserError(`${start}: ${messageOf(error)}`);
  }
}

async function check(file: PolicyFile, terminal: Terminal): Promise<number> {
  const { write, slack, secretProblem } = terminal;
  const { path, policy } = file;
  const { approvals, protect, teams } = policy;
  const { everyone, users, groups } = whoAre(policy.access.approve);
  const approvers = everyone
    ? "everyone"
    : `${counted(users.length, "person", "people")} and ${counted(groups.length, "group")}`;
  const withSecrets = callersIn(policy).filter(({ secret }) => secret !== undefined);
  const held = [
    ...(policy.version === undefined ? [] : [`version ${policy.version}`]),
    counted(approvals.length, "approval rule"),
    counted(protect.length, "protected name"),
    counted(Object.keys(teams).length, "team"),
    ...countedSections(policy),
    counted(Object.keys(policy.services).length, "service"),
  ];
  write(`${path} has no problems: ${held.join(", ")}; ${approvers} may approve.\n`);
  if (withSecrets.length > 0 && secretProblem === undefined)
    write("API_PORT is not set here, so secrets of sources were not looked for.\n");
  if (typeof slack === "string")
    write(
      `Slack was not asked (${slack}): whether these groups, people, and channels exist isn't known.\n`,
    );
  const folder = judgeFolder(lookAtFolder(policy.attestation, dirname(path)));
  const secrets = secretFindings(policy, (variable) => secretProblem?.(variable));
  const names = typeof slack === "string" ? [] : judgeNames(await lookAtPolicy({ slack, policy }));
  const here = [
    ...judgeRules(policy),
    ...folder,
    ...secrets,
    ...terminal.judgePolicy(policy),
  ].filter((finding) => finding.severity !== "well");
  for (const { severity: kind, text: result, next = "", about } of [...here, ...names])
    write(kind === "well" ? `${result}\n` : `${lineAbout(about, file)}${result}\n  ${next}\n`);
  // A problem with the folder doesn't fail the check, because another machine may have the folder.
  return [...secrets, ...names].some((finding) => finding.severity === "alarm") ? 1 : 0;
}

/** `gatehouse.yml line 4: ` for this place, or for the first place with this ID. */
function lineAbout(about: Finding["about"], { path, policy, lineOf }: PolicyFile): string {
  const place = typeof about === "string" ? pathTo(about, policy) : about;
  const line = place && lineOf(place);
  return line === undefined ? "" : `${path} line ${line}: `;
}

function pathTo(wanted: string, value: unknown): readonly PropertyKey[] | undefined {
  if (value === wanted) return [];
  if (typeof value !== "object" || value === null) return undefined;
  const entries = Array.isArray(value) ? value.entries() : Object.entries(value);
  for (const [key, inner] of entries) {
    const rest = pathTo(wanted, inner);
    if (rest !== undefined) return [key, ...rest];
  }
  return undefined;
}

/** The groups as typed, or else as Slack lists them now. `note` says where they are from. */
async function groupsOf(
  who: string,
  typed: string | undefined,
  { policy }: PolicyFile,
  { slack }: Terminal,
): Promise<{ groups: readonly string[]; note: string }> {
  if (typed !== undefined) return { groups: typed.split(","), note: "" };
  const named = groupsNamedIn(policy);
  if (named.length === 0) return { groups: [], note: "" };
  if (typeof slack === "string")
    return {
      groups: [],
      note: `Slack was not asked (${slack}): ${who} counts as in no group. Name them with --groups.\n`,
    };
  const { groups: members } = await lookAtPolicy({ slack, policy });
  const memberships = [...members].filter(([, all]) => Array.isArray(all) && all.includes(who));
  const groups = memberships.map(([group]) => group);
  const unread = named.filter((group) => !Array.isArray(members.get(group)));
  if (unread.length > 0)
    return { groups, note: `Slack didn't say who is in ${unread.join(", ")}.\n` };
  return { groups, note: `Slack says: in ${groups.join(", ") || "none of the groups named"}.\n` };
}

/** A question to the policy: who may run what, and where. */
interface Question {
  who: string;
  groups: readonly string[];
  channel: string;
  /** With a dot. */
  command: string;
  target: string | undefined;
  /** The new name in a rename. */
  newName: string | undefined;
  /**
   * Names of the VMs in a project, because rules apply to them, too. Undefined when nobody named
   * them.
   */
  vms: readonly string[] | undefined;
}

/**
 * Decides as the bot would before it looks at Slack, at the VM, or at limits. It calls the same
 * function.
 */
function decide(asked: Question, file: PolicyFile) {
  const { policy, line } = file;
  const command = commandNamed(asked.command, file);
  const targets = asked.target === undefined ? [] : [targetNamed(asked.target, command, policy)];
  const { who, groups, channel: channelId, newName, vms: names = [] } = asked;
  const input = newName === undefined ? {} : { name: newName };
  if (who.startsWith("services.")) return decideForService(who, { command, targets, input }, file);
  const person = { id: who, teamId: ourTeamId, name: who, kind: "member", groups } as const;
  const question = { person, command, input, channelId };
  // Only their names are known here, so a pin of a VM's ID isn't found
  const vms = names.map((name) => ({ id: "", name }));
  const answer = askAndPermit(question, { targets, vms }, { policy, ourTeamId });
  const { refused: no, permit } = answer;
  const unasked = { approvals: 0, votes: [] };
  if (no) {
    // Someone who reads the file may know what a person in Slack isn't told.
    const rule = no.toldAs === "" ? "" : ` The rule is ${no.rule}.`;
    const why = `refused: ${no.text}${rule} ${line(placeOf(no.rule, policy))}`;
    return { ...unasked, allowed: false, why };
  }
  const grant = allowedBy(asked, command, targets, file);
  if (!mayNeedApproval(command)) return { ...unasked, allowed: true, why: `allowed. ${grant}` };
  const { required, votes, why, index } = permit.approvals;
  // When a rule names who votes, its reason contains the line already.
  const isPlaced = index === "default" || policy.approvals[index]?.votes !== undefined;
  const place = isPlaced ? "" : ` ${line(["approvals", index])}`;
  const approvers = votes.map((need) => ` ${approversOf(need, votes.length, asked.who)}`).join("");
  const how =
    required === 0 ? "allowed, without approval" : `allowed, with ${counted(required, "approval")}`;
  const unknown =
    command.kind === "change" && command.on === "project" && asked.vms === undefined
      ? " This leaves out its VMs: name them with --vms, because rules cover those too."
      : "";
  const sentence = `${how}: ${why}.${place}${approvers} ${grant}${unknown}`;
  return { allowed: true, approvals: required, votes, why: sentence };
}

/**
 * Decides what a program may see or propose. The person who runs a proposal needs the right
 * themselves.
 */
function decideForService(
  who: string,
  { command, targets, input }: { command: Command; targets: readonly Target[]; input: Input },
  { policy, line }: PolicyFile,
) {
  const service = Object.entries(policy.services).find(([name]) => `services.${name}` === who);
  if (!service) throw new UserError(`gatehouse.yml names no ${who}.`);
  const [name, rule] = service;
  const decisionOf = (list: "propose" | "view", isNamed: boolean, note = "") => {
    const [outcome, verb] = isNamed ? ["allowed", "names"] : ["refused", "doesn't name"];
    const why = `${outcome}: ${who}.${list} ${verb} it ${line(["services", name, list])}.${note}`;
    return { allowed: isNamed, approvals: 0, votes: [], why };
  };
  if (isChange(command)) {
    const note = " It only proposes: whoever runs it needs the right to, and approvals as ever.";
    return decisionOf("propose", mayPropose(rule, command, targets[0], input), note);
  }
  if (withJson([command]).length === 0)
    return {
      allowed: false,
      approvals: 0,
      votes: [],
      why: `refused: no program can read /${command.name}.`,
    };
  const scope = scopeOfView(rule.view);
  const isSeen = ({ id, name: called = "" }: ReturnType<typeof ownerOf>) =>
    scope?.sees({ id, name: called }) ?? true;
  return decisionOf("view", rule.view.length > 0 && targets.map(ownerOf).every(isSeen));
}

/**
 * The entry of each access list that gives the person the right. When several teams are involved,
 * each must give it.
 */
function allowedBy(
  { who, groups }: Question,
  command: Command,
  targets: readonly Target[],
  { policy, line }: PolicyFile,
): string {
  const isNamed = (entry: string) => entry === "*" || entry === who || groups.includes(entry);
  const over = targets.flatMap((target) => rightsOver(policy, ownerOf(target)));
  const isAnywhere = over.length === 0;
  const entries = (isAnywhere ? allRights(policy) : over).flatMap(({ place, rights }) => {
    for (const list of listsFor(command)) {
      const isAdminister = list === "administer";
      const entry = (isAdminister ? policy.access.administer : rights[list]).find(isNamed);
      const name = `${isAdminister ? "access" : place}.${list}`;
      if (entry !== undefined) return [`${name} names ${entry} ${line(name.split("."))}`];
    }
    return [];
  });
  return `${entries.slice(0, isAnywhere ? 1 : undefined).join("; ")}.`;
}

/** The people who can give one of the votes, in words. */
function approversOf({ from, required }: VoteNeed, needs: number, who: string): string {
  const { everyone, users, groups } = whoAre(from);
  const start = needs === 1 ? "" : `${required} of these: `;
  if (everyone) return `${start}Every other full member can approve.`;
  const others = [...groups, ...users.filter((id) => id !== who)];
  return others.length === 0
    ? `${start}No one else can approve.`
    : `${start}Approvers: ${others.join(", ")}.`;
}

function commandNamed(dotted: string, { commands }: Pick<PolicyFile, "commands">) {
  const name = dotted.replace(/^\//, "").replaceAll(" ", ".");
  const command = commands.find((candidate) => dottedName(candidate) === name);
  if (command) return command;
  const meant = nearest(name, commands.map(dottedName));
  throw new UserError(
    `There is no command ${dotted}${meant === undefined ? "" : `; did you mean ${meant}?`}`,
  );
}

/**
 * Parses a target: `payments/db-1` is a VM; `payments` is a project, or a VM for a VM's command.
 * Throws UserError when the policy has teams and a VM is named without its project.
 */
function targetNamed(words: string, command: Command, { teams }: Policy): Target {
  const [first = "", name] = words.split("/");
  const isVm = name !== undefined || targetArgument(command)?.target === "vm";
  if (isVm && name === undefined && Object.keys(teams).length > 0)
    throw new UserError(
      `Whose ${first} is depends on its project: name it as project/vm, like payments/${first}.`,
    );
  // The typed words are a name. As an ID, they would match a claim that no longer applies after a
  // rename.
  const base = { id: words, projectId: "", status: "" };
  if (!isVm) return { ...base, kind: "project", name: words };
  return { ...base, kind: "vm", name: name ?? first, ...(name ? { projectName: first } : {}) };
}

function placeOf(rule: string, policy: Policy): readonly PropertyKey[] {
  const [section = "", glob] = rule.split(" ");
  if (glob !== undefined) return [section, policy.protect.indexOf(glob)];
  return section.split(".");
}

const caseSchema = z.strictObject({
  who: z.string(),
  groups: z.array(z.string()).default([]),
  in: z.string().default(""),
  /** `vm.stop payments/db-1`, `project.update pay --name payments --vms db-1,web-1` */
  run: z.string(),
  expect: z.enum(["allowed", "refused"]),
  approvals: z.int().optional(),
  /** The required votes, as in `approvals[].votes`. */
  votes: z
    .array(z.strictObject({ from: z.array(z.string()), required: z.int().default(1) }))
    .optional(),
});

/** Reports each row of the table that is decided differently than expected. */
function test(path: string, file: PolicyFile, { write }: Terminal): number {
  const text = readText(path);
  const rows: unknown = orComplain(path, () => parse(text, { maxAliasCount: 100 }));
  const read = z.array(caseSchema).safeParse(rows);
  if (!read.success) throw new UserError(`${path}: ${z.prettifyError(read.error)}`);
  let fitting = 0;
  for (const [index, { who, groups, in: channel, run, ...wanted }] of read.data.entries()) {
    const decision = decide({ who, groups, channel, ...readRun(run) }, file);
    const fits =
      wanted.expect === (decision.allowed ? "allowed" : "refused") &&
      (wanted.approvals === undefined || wanted.approvals === decision.approvals) &&
      (wanted.votes === undefined || inWords(wanted.votes) === inWords(decision.votes));
    if (fits) fitting += 1;
    else
      write(
        `case ${index + 1}: ${who} ${run}\n  expected ${wantedWords(wanted)}\n  but is   ${decision.why}\n`,
      );
  }
  write(`${fitting} of ${read.data.length} cases as expected\n`);
  return fitting === read.data.length ? 0 : 1;
}

function wantedWords({ expect, approvals, votes }: Partial<z.output<typeof caseSchema>>): string {
  const approved = approvals !== undefined && `with ${counted(approvals, "approval")}`;
  return [expect, approved, votes && `by ${inWords(votes)}`].filter(Boolean).join(", ");
}

/** Splits a question into its parts. A new name may have spaces. */
function readRun(run: string): Pick<Question, "command" | "target" | "newName" | "vms"> {
  const [words = "", ...options] = run.split(/ --(?=(?:name|vms) )/);
  const [command = "", target] = words.split(" ");
  const valueOf = (key: string) =>
    options.find((option) => option.startsWith(`${key} `))?.slice(key.length + 1);
  return { command, target, newName: valueOf("name"), vms: valueOf("vms")?.split(",") };
}

/** Votes as text, independent of their order. */
function inWords(votes: readonly VoteNeed[]): string {
  return votes
    .map(({ from, required }) => `${required} of ${from.toSorted().join(" ")}`)
    .toSorted()
    .join(" and ");
}
