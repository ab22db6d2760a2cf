import type { Policy } from "../../config/policy-file.ts";
import type { ButtonSpec } from "../../messages/message.ts";
import {
  calledName,
  type CommandClass,
  projectOf,
  takesBreakGlass,
  type Target,
  type Command,
} from "../../registry/define.ts";
import { hasForm, type Person } from "../../registry/invocation.ts";
import {
  type AccessList,
  lists,
  listsFor,
  addToList,
  allRights,
  andThey,
  isFullMember,
  mayVote,
  named as isNamed,
  placesSeen,
  rightsOver,
  seesAllOf,
  type Owned,
} from "./access.ts";
import { tellEvaluation } from "./evaluations.ts";
import { acceptedFor, pinsFor } from "../../attestation/pins.ts";
import { compileGlob, fold, matchesGlob } from "../../text/glob.ts";

export type Confirming = Pick<Policy, "confirm">;

/** Whether what interrupts this VM while it runs is confirmed in a form, typed or pressed. */
export const isToConfirm = ({ confirm }: Confirming, target: Target) =>
  target.kind === "vm" && matchingTarget(confirm, target) !== undefined;

/** A press that interrupts is confirmed once: here, unless a form or `confirm` of the policy asks after it. */
export function askOnce(
  button: ButtonSpec,
  command: Command,
  target: Target,
  policy: Confirming,
): ButtonSpec {
  if (command.kind !== "change" || command.class !== "disrupt") return button;
  const { verb } = command.say;
  return hasForm(command) ? button : { ...button, ...interruption(verb, target, policy) };
}

/** Its dialog: `Stop db-1 in payments? What runs there is interrupted.` */
export function interruption(verb: string, target: Target, policy: Confirming) {
  if (isToConfirm(policy, target)) return {};
  const project = projectOf(target);
  const title = `${verb} ${calledName(target)}${project === undefined ? "" : ` in ${project}`}?`;
  const text = "What runs there is interrupted.";
  return { confirm: { title, text, confirm: verb, style: "danger" as const } };
}

/**
 * Why this command must not change a target. `because`: the protected name in words, where it isn't the target's own. A project
 * without the names of its VMs counts as protected, by no `glob`.
 */
export function protection(policy: Pick<Policy, "protect">, judged: Judged) {
  const { command, targets, vmNames } = judged;
  if (policy.protect.length === 0 || command.kind === "read" || !command.protect) return undefined;
  for (const target of targets) {
    for (const named of judgedNames({ ...judged, targets: [target] })) {
      const found = matchingTarget(policy.protect, named);
      if (!found) continue;
      const other = found.name === target.name ? undefined : found.name;
      return { target, because: named.because ?? other, glob: found.glob };
    }
    if (command.on === "project" && vmNames === undefined)
      return { target, because: undefined, glob: undefined };
  }
  return undefined;
}

/** `targets` are empty until they are resolved: then only the person and the channel decide. */
export interface Asked extends Judged {
  policy: Policy;
  person: Person;
  ourTeamId: string;
  /** Empty where there is no channel. */
  channelId: string;
  /** Skips approvals and `access.operate`. */
  breakGlass?: boolean;
  /** It restores what another request saved right before itself: approvers may request that too. */
  isUndo?: boolean;
  /** Made by Gatehouse right before what was asked for: the same right covers it. */
  isSafety?: boolean;
  /** Names of people and groups by ID, for the hint. */
  nameOf?: (id: string) => string | undefined;
}

/** `text` is plain; `hint` may contain code spans; neither mentions anyone. */
export interface PolicyRefusal {
  /** The rule that refuses: a place in gatehouse.yml (`access.operate`, `protect vault-*`), or `person.guest`, `person.team`… */
  rule: string;
  /** In place of the rule, where the person must not learn it; empty where none can be told. */
  toldAs?: string;
  text: string;
  hint: string;
}

const changes: ReadonlySet<CommandClass> = new Set(["change", "disrupt", "destroy", "secret"]);

/** Why a person may not run a command. Denied by default. */
export function refusal(asked: Asked): PolicyRefusal | undefined {
  return accessRefusal(asked) ?? protectRefusal(asked);
}

/** Who may request it, and where: known before the targets are resolved. */
export function accessRefusal(asked: Asked): PolicyRefusal | undefined {
  tellEvaluation("access", asked);
  if (asked.breakGlass) return emergencyRefusal(asked);
  if (mayRun(asked)) return channelRefusal(asked) ?? speakingRefusal(asked);
  const [list = "administer", ...others] = listsFor(asked.command);
  if (list === "administer" && others.length > 0) return personRefusal(asked) ?? stopRefusal(asked);
  return personRefusal(asked) ?? listRefusal(asked, list);
}

/** Whether this person may run the command in some channel: on these targets, or on some when none is named, as help shows. */
export function mayRun(
  asked: Omit<Asked, "targets" | "channelId"> & { targets?: readonly Target[] },
): boolean {
  const { policy, person, ourTeamId, command, targets = [] } = asked;
  const inLists = lists(policy, person, ourTeamId, projectsOf({ ...asked, targets }));
  if (asked.isUndo && inLists.includes("approve")) return true;
  if (listsFor(command).some((list) => inLists.includes(list))) return true;
  return (
    command.kind === "read" && command.votersToo === true && mayVote(policy, person, ourTeamId)
  );
}

/**
 * Whom gatehouse.yml lets run a command, and the rules that say so. Only the places that this person sees count, because a
 * place whose VMs are hidden from them may not be named.
 */
export function whoMayRun({
  policy,
  person,
  ourTeamId,
  command,
}: Pick<Asked, "policy" | "person" | "ourTeamId" | "command">) {
  const seen = placesSeen(policy, person, ourTeamId);
  const places = allRights(policy).filter(({ place }) => seen.includes(place));
  const of = listsFor(command).flatMap((list) =>
    list === "administer"
      ? { rule: "access.administer", entries: policy.access.administer }
      : places.map(({ place, rights }) => ({ rule: `${place}.${list}`, entries: rights[list] })),
  );
  const listing = of.filter(({ entries }) => entries.length > 0);
  return {
    rules: (listing.length > 0 ? listing : of).map(({ rule }) => rule),
    entries: [...new Set(listing.flatMap(({ entries }) => entries))],
  };
}

/** Break-glass works in any channel; `protect` holds even then. */
function emergencyRefusal(asked: Asked): PolicyRefusal | undefined {
  const { policy, person, ourTeamId, command } = asked;
  if (!lists(policy, person, ourTeamId, projectsOf(asked)).includes("breakGlass")) {
    return personRefusal(asked) ?? listRefusal(asked, "breakGlass");
  }
  if (asked.isSafety || takesBreakGlass(command)) return undefined;
  return {
    rule: "access.breakGlass",
    text: `/${command.name} can't be run with --break-glass.`,
    hint: "It is for commands that disrupt or destroy. Run this one without it.",
  };
}

/** Whether gatehouse.yml lists somebody who may have this run without approvals: in every place that has a say. */
export function canSkipApprovals(
  judged: Judged,
  policy: Pick<Policy, "access" | "teams">,
): boolean {
  const over = placesOver(judged, policy);
  return (
    takesBreakGlass(judged.command) && over.every(({ rights }) => rights.breakGlass.length > 0)
  );
}

/** The places of gatehouse.yml that have a say in this. */
const placesOver = (judged: Judged, policy: Pick<Policy, "access" | "teams">) =>
  projectsOf(judged).flatMap((project) => rightsOver(policy, project));

const kindTexts: Readonly<Record<Exclude<Person["kind"], "member">, string>> = {
  guest: "Guests can't do this from Slack.",
  bot: "Bots and workflows can't run commands; a person must.",
  external: "This is only for members of this workspace.",
  deactivated: "This account is deactivated.",
};

function personRefusal({ policy, person, ourTeamId, nameOf }: Asked): PolicyRefusal | undefined {
  if (isFullMember(person, ourTeamId)) return undefined;
  const kind = person.kind === "member" ? "external" : person.kind;
  return {
    rule: person.kind === "member" ? "person.team" : `person.${kind}`,
    text: kindTexts[kind],
    hint: `Full members of the workspace can, if gatehouse.yml lists them.${andThey("They can help:", policy.access.operate, nameOf)}`,
  };
}

function listRefusal(asked: Asked, list: AccessList): PolicyRefusal {
  const { policy, person, command, nameOf } = asked;
  const over = placesOver(asked, policy);
  if (list !== "administer" && over.length === 0 && hasTeams(policy))
    return noListAtAll(asked, list);
  // The first that says no; without targets any would have been enough
  const lacking =
    list === "administer" || over.length === 0
      ? { place: "access", entries: policy.access[list] }
      : over
          .map(({ place, rights }) => ({ place, entries: rights[list] }))
          .find(({ entries }) => !isNamed(entries, person));
  const place = lacking?.place ?? "access";
  const rule = `${place}.${list}`;
  if (list !== "administer" && over.length > 0 && isHidden(place, asked))
    return { ...noTeamOfTheirs(asked), rule };
  const entries = [...new Set(lacking?.entries)].filter((entry) => entry !== "*");
  return {
    rule,
    text: `You can't run /${command.name}: it requires ${rule} in gatehouse.yml; you aren't listed.`,
    hint: addToList(rule, entries, nameOf),
  };
}

/** For what administrators and every approver may do, because stopping is always safe: both lists, and who is in them. */
function stopRefusal({ policy: { access, teams }, command, nameOf }: Asked): PolicyRefusal {
  const both = "access.administer or access.approve";
  const inTeams = Object.values(teams).some(({ approve }) => approve.length > 0);
  const entries = [...new Set([...access.administer, ...access.approve])];
  const listed = entries.filter((entry) => entry !== "*");
  const orTeams = inTeams ? ", or approve of a team," : "";
  return {
    rule: "access.administer",
    toldAs: both,
    text: `You can't run /${command.name}: it requires ${both}${orTeams} in gatehouse.yml; you aren't listed.`,
    hint: `${addToList("access.approve", listed, nameOf)}${inTeams ? " Approvers of every team can, too." : ""}`,
  };
}

/**
 * No list over anything has this person. Which would help depends on whose the target is, and no name is looked up for someone
 * without the right: an answer that named the team would tell that the target exists.
 */
function noListAtAll({ policy, command, nameOf }: Asked, list: AccessList): PolicyRefusal {
  return {
    rule: list,
    toldAs: "",
    text: `You can't run /${command.name}: gatehouse.yml lists you under ${list} for no team, and not under access.`,
    hint: `\`teams\` says who may do what with a team's VMs and projects, \`access\` with all others.${andThey("Ask", policy.access.administer, nameOf)}`,
  };
}

const hasTeams = ({ teams }: Pick<Policy, "teams">) => Object.keys(teams).length > 0;

/** Whether a person must not learn that this place of gatehouse.yml has a project of that name. */
function isHidden(place: string, { policy, person, ourTeamId }: Asked): boolean {
  const seen = placesSeen(policy, person, ourTeamId);
  // Whoever sees nothing learns of no team either; without teams everything is in the one place
  return hasTeams(policy) && !seen.includes(place);
}

/** The same for a name that another team has and for one that nobody has. */
function noTeamOfTheirs({ command }: Asked): Omit<PolicyRefusal, "rule"> {
  return {
    toldAs: "teams",
    text: `You can't run /${command.name} with this name: none of your teams has projects with that name.`,
    hint: "`teams` in gatehouse.yml says which names are whose.",
  };
}

/** Whether `channels` lets anybody run it in this channel: a button that everyone is refused isn't shown. */
export function isRunIn({
  policy: { channels },
  command,
  channelId,
}: {
  policy: Pick<Policy, "channels">;
  command: Pick<Command, "class">;
  channelId: string;
}): boolean {
  return channels === undefined || !changes.has(command.class) || channels.includes(channelId);
}

function channelRefusal({ policy, command, channelId }: Asked): PolicyRefusal | undefined {
  const { channels } = policy;
  if (channels === undefined || isRunIn({ policy, command, channelId })) return undefined;
  return {
    rule: "channels",
    text: `/${command.name} changes something, so ${channelId === "" ? "it must be run in a channel" : "it can't be run in this channel"}.`,
    hint: `Run it in ${channels.map((id) => `\`${id}\``).join(", ")} (\`channels\` in gatehouse.yml).`,
  };
}

function speakingRefusal(asked: Asked): PolicyRefusal | undefined {
  const { policy, person, ourTeamId, command, channelId, input = {} } = asked;
  if (command.kind !== "read" || command.speaksFor?.(input) !== true) return undefined;
  // Without a channel the command itself asks for one
  if (channelId === "" || seesAllOf(channelId, person, policy, ourTeamId)) return undefined;
  return {
    rule: "teams",
    text: `You can't run /${command.name} here: you can't see everything that this channel may be told.`,
    hint: "Ask someone who can, or run it in a channel of your team.",
  };
}

/** Why no one may change its targets with it. */
function protectRefusal(asked: Asked): PolicyRefusal | undefined {
  tellEvaluation("protect", asked);
  const found = protection(asked.policy, asked);
  if (!found) return pinRefusal(asked);
  const { target, because, glob } = found;
  if (glob === undefined) return unknownVms("protect", target, "protected");
  const what = because === undefined ? target.name : `${target.name} (because of ${because})`;
  return {
    rule: `protect ${glob}`,
    text: `${what} is protected: it can't be created, restored, deleted, stopped, resized, or renamed from Slack.`,
    hint: `The rule is \`${glob}\` under \`protect\` in gatehouse.yml.${andTheyKnow(asked)}`,
  };
}

function unknownVms(rule: string, { name }: Target, state: string): PolicyRefusal {
  return {
    rule,
    text: `Can't determine which VMs ${name} contains, and some may be ${state}. Nothing was done.`,
    hint: "Try again in a minute.",
  };
}

/** A pin holds for a name: a new one must not lead out of it. */
function pinRefusal(asked: Asked): PolicyRefusal | undefined {
  const found = looserPin(asked.policy, asked);
  if (!found) return undefined;
  const { target, vmName } = found;
  if (vmName === undefined) return unknownVms("attestation.pins", target, "pinned");
  return {
    rule: "attestation.pins",
    text: `${target.name} can't get this name: ${vmName} in it is pinned, and gatehouse.yml would pin or accept something else under the new name.`,
    hint: `\`attestation.pins\` and \`attestation.appraisal\` in gatehouse.yml must say the same for the new name.${andTheyKnow(asked)}`,
  };
}

function andTheyKnow({ policy, nameOf }: Asked): string {
  return andThey("Ask", policy.access.administer, nameOf);
}

/** What a command is asked to do. */
export interface Judged {
  command: Command;
  targets: readonly Target[];
  /** The arguments: a new name is among them. */
  input?: Readonly<Record<string, unknown>> | undefined;
  /** The names of a project's VMs; undefined when they can't be told. */
  vmNames?: readonly string[] | undefined;
}

/** A target under one of the names that a rule may know it by. */
export type TargetByName = Target & {
  /** In words, where this isn't the name that was asked for. */
  because?: string;
};

/**
 * Everything that rules look at: each target, a project under its new name too, and the VMs inside under both. Whoever
 * judges takes the strictest rule of all, so that no change of name leads out of one (decision 021).
 */
export function judgedNames(judged: Judged): readonly TargetByName[] {
  const { command, targets, vmNames = [] } = judged;
  if (command.kind !== "change" || command.on !== "project") return targets;
  const ofNow = targets.flatMap((target) => [
    target,
    ...vmNames.map((name) => inside(target, name, name)),
  ]);
  return [...ofNow, ...renamed(judged).map(({ after }) => after)];
}

/** Of a rename each project, and each VM inside, under the name that rules know now and under the one of afterwards. */
export function renamed(judged: Judged): readonly { before: TargetByName; after: TargetByName }[] {
  const { targets, vmNames = [] } = judged;
  const newName = newNameOf(judged);
  if (newName === undefined) return [];
  return targets.flatMap((target) => {
    const renamedTo = { ...target, name: newName };
    return [
      { before: target, after: { ...renamedTo, because: `its new name ${newName}` } },
      ...vmNames.map((name) => ({
        before: inside(target, name, name),
        after: inside(renamedTo, name, `${newName}/${name}, its name afterwards`),
      })),
    ];
  });
}

/** The projects that all of these are in, or are. */
export function projectsOf(judged: Judged): readonly Owned[] {
  const owned = judgedNames(judged).map(ownerOf);
  return [...new Map(owned.map((one) => [`${one.id}\n${one.name}`, one])).values()];
}

/** The project of a VM, or the project itself. */
export function ownerOf({
  kind,
  name,
  projectId,
  projectName,
}: Pick<Target, "kind" | "name" | "projectId" | "projectName">): Owned {
  return kind === "vm" ? { id: projectId, name: projectName } : { id: projectId, name };
}

function inside(project: Target, name: string, because: string): TargetByName {
  return { ...project, kind: "vm", name, projectName: project.name, because };
}

export function newNameOf({ command, input }: Judged): string | undefined {
  if (command.kind !== "change" || command.on !== "project" || command.renames !== true)
    return undefined;
  const name = input?.["name"];
  return typeof name === "string" && name.trim() !== "" ? name.trim() : undefined;
}

/** The pinned VM that a new name would take out of its pin, let run more than before, or put under another rule of appraisal. */
export function looserPin(policy: Policy, judged: Judged) {
  const { pins, appraisal } = policy.attestation;
  const newName = newNameOf(judged);
  if (newName === undefined || pins.length === 0) return undefined;
  const { vmNames } = judged;
  for (const target of judged.targets) {
    if (vmNames === undefined) return { target, vmName: undefined };
    for (const vmName of vmNames) {
      const names = [vmName, `${target.name}/${vmName}`];
      const newNames = [vmName, `${newName}/${vmName}`];
      const [before, after] = [pinsFor(pins, names), pinsFor(pins, newNames)];
      const isLooser = after.length === 0 || after.some((one) => !before.includes(one));
      const isJudgedOtherwise = acceptedFor(appraisal, names) !== acceptedFor(appraisal, newNames);
      if (before.length > 0 && (isLooser || isJudgedOtherwise)) return { target, vmName };
    }
  }
  return undefined;
}

/** A target as globs know it. */
type Nameable = Pick<Target, "kind" | "name" | "projectName">;

/** Whether a name matches one of the globs, ignoring case: `vault-*` matches `Vault-1`. */
export function matchesAny(globs: readonly string[], name: string): boolean {
  const folded = fold(name);
  return globs.some((glob) => matchesGlob(fold(glob), folded));
}

/** The first glob that names a target, and the name it matches (`compileTargetGlob`). */
export function matchingTarget(
  globs: readonly string[],
  target: Nameable,
): { glob: string; name: string } | undefined {
  for (const glob of globs) {
    const name = compileTargetGlob(glob)(target);
    if (name !== undefined) return { glob, name };
  }
  return undefined;
}

/**
 * Whether one of the globs names a VM or project, as in `protect`; `payments/*` names the project as well. Compiled once, for
 * many.
 */
export function compileTargetGlobs(globs: readonly string[]): (target: Nameable) => boolean {
  const names = globs.map(compileTargetGlob);
  const whole = globs.filter((glob) => glob.endsWith("/*"));
  const ofProject = whole.map((glob) => compileGlob(fold(glob.slice(0, -2))));
  return (target) =>
    names.some((nameOf) => nameOf(target) !== undefined) ||
    (target.kind === "project" && ofProject.some((matches) => matches(fold(target.name))));
}

/**
 * The name by which a glob means a target, ignoring case: the target's own, or for a VM its project's. A glob with a slash
 * means `project/name`. IDs aren't matched: `pro*` must not match every `proj-…`.
 */
function compileTargetGlob(glob: string): (target: Nameable) => string | undefined {
  const matches = compileGlob(fold(glob));
  return ({ kind, name, projectName }) => {
    const inProject = kind === "vm" ? projectName : undefined;
    const isWhole = glob.includes("/") && inProject !== undefined;
    const names = isWhole ? [`${inProject}/${name}`, name] : [name, inProject];
    return names.find((word) => word !== undefined && matches(fold(word)));
  };
}
