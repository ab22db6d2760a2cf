import type { Policy } from "../../config/policy-file.ts";
import type { ButtonSpec } from "../../messages/buttons.ts";
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
  allRights,
  explainHowToList,
  nameInSentence,
  namesInWords,
  isFullMember,
  mayVote,
  named as isNamed,
  placesSeen,
  rightsOver,
  seesAllOf,
  type Owned,
} from "./access.ts";
import { publishEvaluation } from "./evaluations.ts";
import { type NamedVm, acceptedFor, namesOf, pinsFor } from "../../attestation/pins.ts";
import { fold } from "../../text/fold.ts";
import { compileGlob, matchesGlob } from "../../text/glob.ts";

export type Confirming = Pick<Policy, "confirm">;

/**
 * Whether the policy's `confirm` names this VM. An interruption of it is then confirmed in a form,
 * whether it was typed or pressed.
 */
export const isToConfirm = ({ confirm }: Confirming, target: Target) =>
  target.kind === "vm" && matchingTarget(confirm, target) !== undefined;

/**
 * Adds a confirmation to a button that interrupts. A form or the policy's `confirm` may ask after
 * the press; then it adds none, so that a person confirms once.
 */
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

/**
 * Returns the dialog of such a button: `Stop db-1 in payments? What runs there is interrupted.`
 * Empty when a form asks after the press.
 */
export function interruption(verb: string, target: Target, policy: Confirming) {
  if (isToConfirm(policy, target)) return {};
  const project = projectOf(target);
  const title = `${verb} ${calledName(target)}${project === undefined ? "" : ` in ${project}`}?`;
  const text = "What runs there is interrupted.";
  return { confirm: { title, text, confirm: verb, style: "danger" as const } };
}

/**
 * Finds a target that this command must not change. `because` is the protected name in words, where
 * it isn't the target's own. A project counts as protected, with no `glob`, when its VMs are
 * unknown.
 */
export function protection(policy: Pick<Policy, "protect">, judged: Judged) {
  const { command, targets, vms } = judged;
  if (policy.protect.length === 0 || command.kind === "read" || !command.protect) return undefined;
  for (const target of targets) {
    for (const named of judgedNames({ ...judged, targets: [target] })) {
      const match = matchingTarget(policy.protect, named);
      if (!match) continue;
      const other = match.name === target.name ? undefined : match.name;
      return { target, because: named.because ?? other, glob: match.glob };
    }
    if (command.on === "project" && vms === undefined)
      return { target, because: undefined, glob: undefined };
  }
  return undefined;
}

/**
 * A question of a person. `targets` is empty until the targets are resolved, and until then only
 * the person and the channel decide.
 */
export interface Asked extends Judged {
  policy: Policy;
  person: Person;
  ourTeamId: string;
  /** Empty where there is no channel. */
  channelId: string;
  /** It skips approvals, and `breakGlass` replaces the usual list. */
  breakGlass?: boolean;
  /**
   * It restores a snapshot that another request took right before it replaced data. Approvers may
   * request that, too.
   */
  isUndo?: boolean;
  /**
   * Gatehouse takes this snapshot right before a request replaces data. The right of that request
   * covers it.
   */
  isSafety?: boolean;
  /**
   * The act changes no target: it cancels or delays, or records an outcome. Only the lists decide
   * then, and neither `channels` nor `protect`.
   */
  changesNothing?: boolean;
  /** Names of people and groups by ID, for the hint. */
  nameOf?: (id: string) => string | undefined;
}

/**
 * Why something is refused, with people and groups first. `text` is plain; `hint` and `smallPrint`
 * may contain code spans; none mentions anyone.
 */
export interface PolicyRefusal {
  /**
   * The rule that refuses: a place in gatehouse.yml (`access.operate`, `protect vault-*`), or
   * `person.guest`, `person.team`…
   */
  rule: string;
  /**
   * Shown in place of the rule when the person must not learn it. Empty when no rule may be shown.
   */
  toldAs?: string;
  text: string;
  /** The next step, if the person has one. */
  hint?: string | undefined;
  /** The rule in gatehouse.yml, as the person may learn it. */
  smallPrint?: string;
  /**
   * IDs of the people and groups who may do it, when the person lacks nothing but the right. They
   * can be asked.
   */
  allowed?: readonly string[];
}

const changes: ReadonlySet<CommandClass> = new Set(["change", "disrupt", "destroy", "secret"]);

/**
 * Returns why a person may not run a command. Everything that no list allows is refused. What
 * `protect` forbids to everybody is said as that, because those who have the right can't do it
 * either.
 */
export function refusal(asked: Asked): PolicyRefusal | undefined {
  const refused = accessRefusal(asked);
  if (asked.changesNothing) return refused;
  if (!refused) return protectRefusal(asked);
  const forbidden = refused.allowed && protection(asked.policy, asked);
  return forbidden?.glob === undefined ? refused : protectRefusal(asked);
}

/** Judges who may request a command, and where. It can judge before the targets are resolved. */
export function accessRefusal(asked: Asked): PolicyRefusal | undefined {
  publishEvaluation("access", asked);
  if (asked.breakGlass) return emergencyRefusal(asked);
  if (mayRun(asked)) return channelRefusal(asked) ?? speakingRefusal(asked);
  const [list = "administer", ...others] = listsFor(asked.command);
  if (list === "administer" && others.length > 0)
    return personRefusal(asked) ?? refusalOfStop(asked);
  return personRefusal(asked) ?? listRefusal(asked, list);
}

/**
 * Whether this person may run the command in some channel: on these targets, or, as help shows it,
 * on any target when none is named.
 */
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

/** Judges break-glass, which works in any channel. `protect` applies even then. */
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

/**
 * Whom every place of gatehouse.yml that decides about this lets run it without approvals. Where
 * several places decide, whoever one of them lists may have the right from the others by a group.
 */
export function whoSkipsApprovals(
  judged: Judged,
  policy: Pick<Policy, "access" | "teams">,
): readonly string[] {
  if (!takesBreakGlass(judged.command)) return [];
  const over = placesOver(judged, policy).map(({ rights }) => rights.breakGlass);
  return over.some((entries) => entries.length === 0) ? [] : [...new Set(over.flat())];
}

/** Returns the places of gatehouse.yml that decide about this. */
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
    hint: nameInSentence("They can help:", policy.access.operate, nameOf).trim() || undefined,
    smallPrint: "Full members of the workspace can, if gatehouse.yml lists them.",
  };
}

function listRefusal(asked: Asked, list: AccessList): PolicyRefusal {
  const { policy, person, nameOf } = asked;
  const over = placesOver(asked, policy);
  if (list !== "administer" && over.length === 0 && hasTeams(policy))
    return noListAtAll(asked, list);
  // The refusal names the first place that doesn't list the person. Administrators are listed only
  // under `access`, and without targets and teams there is no other place.
  const lacking =
    list === "administer" || over.length === 0
      ? { place: "access", entries: policy.access[list] }
      : over
          .map(({ place, rights }) => ({ place, entries: rights[list] }))
          .find(({ entries }) => !isNamed(entries, person));
  const place = lacking?.place ?? "access";
  const rule = `${place}.${list}`;
  if (list !== "administer" && over.length > 0 && isHidden(place, asked))
    return { ...noTeamOfTheirs(), rule };
  const entries = [...new Set(lacking?.entries)].filter((entry) => entry !== "*");
  const deed = `${deedInWords(asked)}${list === "breakGlass" ? " without approval" : ""}`;
  if (entries.length === 0)
    return { rule, text: `Nobody can ${deed} yet.`, hint: explainHowToList(rule) };
  return {
    rule,
    text: `Only ${namesInWords(entries, nameOf)} can ${deed}.`,
    smallPrint: `Rule: \`${rule}\` in gatehouse.yml.`,
    ...(list === "operate" ? { allowed: entries } : {}),
  };
}

/**
 * Returns what was asked for in words: `stop web-2 (payments)`, `stop VMs` while no name is known,
 * `run /gatehouse audit` for what changes nothing.
 */
export function deedInWords({ command, targets }: Pick<Judged, "command" | "targets">): string {
  const [target, ...others] = targets;
  const hasName = target !== undefined && others.length === 0 && target.name !== "";
  const project = target && projectOf(target);
  const called = hasName
    ? `${calledName(target)}${project === undefined ? "" : ` (${project})`}`
    : undefined;
  if (command.kind === "read" || command.class === "secret")
    return `run /${command.name}${called === undefined ? "" : ` on ${called}`}`;
  const things = command.on === "vm" ? "VMs" : "projects";
  return `${command.say.verb.toLowerCase()} ${called ?? things}`;
}

/**
 * Refuses a command that administrators and every approver may run, because stopping is always
 * safe. It names the people in both lists.
 */
function refusalOfStop({ policy: { access, teams }, command, nameOf }: Asked): PolicyRefusal {
  const inTeams = Object.values(teams).some(({ approve }) => approve.length > 0);
  const entries = [...new Set([...access.administer, ...access.approve])];
  const listed = entries.filter((entry) => entry !== "*");
  const deed = `run /${command.name}`;
  const rule = "access.administer";
  if (listed.length === 0 && !inTeams)
    return { rule, text: `Nobody can ${deed} yet.`, hint: explainHowToList("access.approve") };
  const orTeams = inTeams ? ", or `approve` of a team," : "";
  const approvers = "the approvers of each team";
  const who =
    listed.length === 0
      ? approvers
      : `${namesInWords(listed, nameOf)}${inTeams ? `, and ${approvers},` : ""}`;
  return {
    rule,
    toldAs: "access.administer or access.approve",
    text: `Only ${who} can ${deed}.`,
    smallPrint: `Rule: \`access.administer\` or \`access.approve\`${orTeams} in gatehouse.yml.`,
  };
}

/**
 * Refuses a person who is in no such list anywhere. The list that would help depends on the owner
 * of the target. A name that this person doesn't see and a name that nobody has get this same
 * answer, which names no rule.
 */
function noListAtAll(asked: Asked, list: AccessList): PolicyRefusal {
  const { policy, nameOf } = asked;
  const deed = deedInWords({ ...asked, targets: [] });
  const how = list === "breakGlass" ? " without approval" : "";
  return {
    rule: list,
    toldAs: "",
    text: `You can't ${deed}${how}: no team lists you for that.`,
    hint: nameInSentence("Ask", policy.access.administer, nameOf).trim() || undefined,
    smallPrint:
      "`teams` in gatehouse.yml says who can do what with a team's VMs and projects, `access` with all others.",
  };
}

const hasTeams = ({ teams }: Pick<Policy, "teams">) => Object.keys(teams).length > 0;

/** Whether a person must not learn that this place of gatehouse.yml has a project of that name. */
function isHidden(place: string, { policy, person, ourTeamId }: Asked): boolean {
  const seen = placesSeen(policy, person, ourTeamId);
  // A person who sees nothing learns of no team either. Without teams, everything is in one place.
  return hasTeams(policy) && !seen.includes(place);
}

/**
 * Refuses a name that another team has and a name that nobody has with the same answer, so the
 * answer gives nothing away.
 */
function noTeamOfTheirs(): Omit<PolicyRefusal, "rule"> {
  return {
    toldAs: "teams",
    text: "You can't use this name: none of your teams has projects with that name.",
    smallPrint: "`teams` in gatehouse.yml says which names are whose.",
  };
}

/**
 * Whether `channels` lets anybody run the command in this channel. A button that is refused to
 * everyone isn't shown.
 */
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

function channelRefusal(asked: Asked): PolicyRefusal | undefined {
  const { policy, command, channelId } = asked;
  const { channels } = policy;
  if (asked.changesNothing || channels === undefined) return undefined;
  if (isRunIn({ policy, command, channelId })) return undefined;
  return {
    rule: "channels",
    text: `/${command.name} changes something, so ${channelId === "" ? "it must be run in a channel" : "it can't be run in this channel"}.`,
    hint: `Run it in ${channels.map((id) => `\`${id}\``).join(", ")} (\`channels\` in gatehouse.yml).`,
  };
}

function speakingRefusal(asked: Asked): PolicyRefusal | undefined {
  const { policy, person, ourTeamId, command, channelId, input = {} } = asked;
  if (command.kind !== "read" || command.speaksFor?.(input) !== true) return undefined;
  // Without a channel, the command itself asks for one.
  if (channelId === "" || seesAllOf(channelId, person, policy, ourTeamId)) return undefined;
  return {
    rule: "teams",
    text: `You can't run /${command.name} here: you can't see everything that this channel may be told.`,
    hint: "Ask someone who can, or run it in a channel of your team.",
  };
}

/** Returns why no one may change the targets with this command. */
function protectRefusal(asked: Asked): PolicyRefusal | undefined {
  publishEvaluation("protect", asked);
  const match = protection(asked.policy, asked);
  if (!match) return pinRefusal(asked);
  const { target, because, glob } = match;
  if (glob === undefined) return unknownVms("protect", target, "protected");
  const subject = because === undefined ? target.name : `${target.name} (because of ${because})`;
  const { command } = asked;
  const done = command.kind === "change" ? command.say.done.toLowerCase() : "changed";
  return {
    rule: `protect ${glob}`,
    text: `${subject} is protected: it can't be ${done} from Slack.`,
    smallPrint: `Rule: \`${glob}\` under \`protect\` in gatehouse.yml.`,
  };
}

function unknownVms(rule: string, { name }: Target, state: string): PolicyRefusal {
  return {
    rule,
    text: `Can't determine which VMs ${name} contains, and some may be ${state}. Nothing was done.`,
    hint: "Try again in a minute.",
  };
}

/** Refuses a rename that leads out of a pin, because a pin holds for a name. */
function pinRefusal(asked: Asked): PolicyRefusal | undefined {
  const pinned = looserPin(asked.policy, asked);
  if (!pinned) return undefined;
  const { target, vmName } = pinned;
  if (vmName === undefined) return unknownVms("attestation.pins", target, "pinned");
  return {
    rule: "attestation.pins",
    text: `${target.name} can't get this name: ${vmName} in it is pinned, and gatehouse.yml would pin or accept something else under the new name.`,
    hint: nameInSentence("Ask", asked.policy.access.administer, asked.nameOf).trim() || undefined,
    smallPrint:
      "`attestation.pins` and `attestation.appraisal` in gatehouse.yml must say the same for the new name.",
  };
}

/** A command, its targets, and its arguments, as rules judge them. */
export interface Judged {
  command: Command;
  targets: readonly Target[];
  /** The arguments, which may contain a new name. */
  input?: Readonly<Record<string, unknown>> | undefined;
  /** A project's VMs. Undefined when they can't be determined. */
  vms?: readonly VmWithin[] | undefined;
}

/** A VM of a project that rules judge. */
export type VmWithin = Pick<NamedVm, "id" | "name">;

/** A target under one of the names by which a rule may know it. */
export type TargetByName = Target & {
  /** Says in words which name this is, where it isn't the one that was asked for. */
  because?: string;
};

/**
 * Returns all names that rules judge: each target, a project also under its new name, and the VMs
 * inside under both. Callers apply the strictest rule of all, so that no change of name leads out
 * of one (decision 021).
 */
export function judgedNames(judged: Judged): readonly TargetByName[] {
  const { command, targets, vms = [] } = judged;
  if (command.kind !== "change" || command.on !== "project") return targets;
  const ofNow = targets.flatMap((target) => [
    target,
    ...vms.map((vm) => inside(target, vm, vm.name)),
  ]);
  return [...ofNow, ...renamed(judged).map(({ after }) => after)];
}

/**
 * Returns the projects that a rename affects, and the VMs inside, each under the present name and
 * under the new one. Empty for other commands.
 */
export function renamed(judged: Judged): readonly { before: TargetByName; after: TargetByName }[] {
  const { targets, vms = [] } = judged;
  const newName = newNameOf(judged);
  if (newName === undefined) return [];
  return targets.flatMap((target) => {
    const renamedTo = { ...target, name: newName };
    return [
      { before: target, after: { ...renamedTo, because: `its new name ${newName}` } },
      ...vms.map((vm) => ({
        before: inside(target, vm, vm.name),
        after: inside(renamedTo, vm, `${newName}/${vm.name}, its name afterwards`),
      })),
    ];
  });
}

/** Returns the projects that the targets are in, or are, under all names that rules judge. */
function projectsOf(judged: Judged): readonly Owned[] {
  const owned = judgedNames(judged).map(ownerOf);
  return [...new Map(owned.map((project) => [`${project.id}\n${project.name}`, project])).values()];
}

/** Returns the project of a VM, or the project itself. */
export function ownerOf({
  kind,
  name,
  projectId,
  projectName,
}: Pick<Target, "kind" | "name" | "projectId" | "projectName">): Owned {
  return kind === "vm" ? { id: projectId, name: projectName } : { id: projectId, name };
}

function inside(project: Target, { id, name }: VmWithin, because: string): TargetByName {
  return { ...project, kind: "vm", id, name, projectName: project.name, because };
}

export function newNameOf({ command, input }: Judged): string | undefined {
  if (command.kind !== "change" || command.on !== "project" || command.renames !== true)
    return undefined;
  const name = input?.["name"];
  return typeof name === "string" && name.trim() !== "" ? name.trim() : undefined;
}

/**
 * Finds a pinned VM that a new name would take out of its pin, allow other measurements, or put
 * under another rule of appraisal. `vmName` is undefined when the VMs are unknown.
 */
export function looserPin(policy: Policy, judged: Judged) {
  const { pins, appraisal } = policy.attestation;
  const newName = newNameOf(judged);
  if (newName === undefined || pins.length === 0) return undefined;
  const { vms } = judged;
  for (const target of judged.targets) {
    if (vms === undefined) return { target, vmName: undefined };
    const { projectId } = target;
    for (const vm of vms) {
      const names = namesOf({ ...vm, projectId, projectName: target.name });
      const newNames = namesOf({ ...vm, projectId, projectName: newName });
      const [before, after] = [pinsFor(pins, names), pinsFor(pins, newNames)];
      const isLooser = after.length === 0 || after.some((pin) => !before.includes(pin));
      const isJudgedOtherwise = acceptedFor(appraisal, names) !== acceptedFor(appraisal, newNames);
      if (before.length > 0 && (isLooser || isJudgedOtherwise)) return { target, vmName: vm.name };
    }
  }
  return undefined;
}

/** The parts of a target that globs match. */
type Nameable = Pick<Target, "kind" | "name" | "projectName">;

/** Whether a name matches one of the globs, ignoring case: `vault-*` matches `Vault-1`. */
export function matchesAny(globs: readonly string[], name: string): boolean {
  const folded = fold(name);
  return globs.some((glob) => matchesGlob(fold(glob), folded));
}

/**
 * Returns the first glob that names a target, with the name that it matches (`compileTargetGlob`).
 */
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
 * Compiles globs, once for many targets, into a test whether one of them names a VM or project, as
 * in `protect`. Here `payments/*` names the project as well.
 */
export function compileTargetGlobs(globs: readonly string[]): (target: Nameable) => boolean {
  const names = globs.map(compileTargetGlob);
  const whole = globs.map(fold).filter((glob) => glob.endsWith("/*"));
  const ofProject = whole.map((glob) => compileGlob(glob.slice(0, -2)));
  return (target) =>
    names.some((nameOf) => nameOf(target) !== undefined) ||
    (target.kind === "project" && ofProject.some((matches) => matches(fold(target.name))));
}

/**
 * Compiles a glob into a function that returns the name by which the glob matches a target,
 * ignoring case: the target's own, or for a VM its project's. A glob with a slash matches
 * `project/name`. IDs aren't matched, because `pro*` must not match every `proj-…`.
 */
function compileTargetGlob(glob: string): (target: Nameable) => string | undefined {
  const folded = fold(glob);
  const matches = compileGlob(folded);
  return ({ kind, name, projectName }) => {
    const inProject = kind === "vm" ? projectName : undefined;
    const isWhole = folded.includes("/") && inProject !== undefined;
    const names = isWhole ? [`${inProject}/${name}`, name] : [name, inProject];
    return names.find((word) => word !== undefined && matches(fold(word)));
  };
}
