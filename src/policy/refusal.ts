import { statusFacts } from "../compute/compute.ts";
import type { Policy } from "../config/policy-file.ts";
import type { CommandClass, Target } from "../registry/define.ts";
import type { Person } from "../registry/invocation.ts";
import { type Judged, judgedNames, looserPin, projectsOf } from "./judged.ts";
import {
  type AccessList,
  lists,
  listsFor,
  addToList,
  andThey,
  isFullMember,
  mayVote,
  named as isNamed,
  placesSeen,
} from "./access.ts";
import { seesAllOf } from "./scope.ts";
import { matchingTarget } from "./target-globs.ts";
import { rightsOver } from "./teams.ts";

/** Whether it is confirmed once, typed or pressed: it interrupts what runs on a VM that `confirm` names, without a form. */
export function needsConfirmation(
  { confirm }: Pick<Policy, "confirm">,
  command: Judged["command"],
  target: Target,
): boolean {
  return (
    command.class === "disrupt" &&
    target.kind === "vm" &&
    !statusFacts(target.status).isStopped &&
    matchingTarget(confirm, target) !== undefined
  );
}

/**
 * Why this command must not change a target. `because`: the protected name in words, where it isn't the target's own. A project
 * without the names of its VMs counts as protected, by no `glob`.
 */
export function protection(policy: Policy, judged: Judged) {
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
  /** In place of the rule, where the person must not learn it. */
  toldAs?: string;
  text: string;
  hint: string;
}

const changes: ReadonlySet<CommandClass> = new Set(["change", "disrupt", "destroy", "secret"]);

/** Why a person may not run a command. Denied by default. The first half of `decide`. */
export function refusal(asked: Asked): PolicyRefusal | undefined {
  return accessRefusal(asked) ?? protectRefusal(asked);
}

/** Who may request it, and where: known before the targets are resolved. */
export function accessRefusal(asked: Asked): PolicyRefusal | undefined {
  if (asked.breakGlass) return emergencyRefusal(asked);
  if (mayRun(asked)) return channelRefusal(asked) ?? speakingRefusal(asked);
  return personRefusal(asked) ?? listRefusal(asked, listsFor(asked.command)[0] ?? "administer");
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

/** Break-glass works in any channel; `protect` holds even then. */
function emergencyRefusal(asked: Asked): PolicyRefusal | undefined {
  const { policy, person, ourTeamId, command } = asked;
  if (!lists(policy, person, ourTeamId, projectsOf(asked)).includes("breakGlass")) {
    return personRefusal(asked) ?? listRefusal(asked, "breakGlass");
  }
  if (asked.isSafety || command.class === "disrupt" || command.class === "destroy")
    return undefined;
  return {
    rule: "access.breakGlass",
    text: `/${command.name} can't be run with --break-glass.`,
    hint: "It is for commands that disrupt or destroy. Run this one without it.",
  };
}

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
    hint: `Full members of the workspace can, if gatehouse.yml lists them.${andThey("They can help", policy.access.operate, nameOf)}`,
  };
}

function listRefusal(asked: Asked, list: AccessList): PolicyRefusal {
  const { policy, person, command, nameOf } = asked;
  const over = projectsOf(asked).flatMap((project) => rightsOver(policy, project));
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

/** Whether a person of some team must not learn that this place of gatehouse.yml has a project of that name. */
function isHidden(place: string, { policy, person, ourTeamId }: Asked): boolean {
  const seen = placesSeen(policy, person, ourTeamId);
  return seen.length > 0 && !seen.includes(place);
}

/** The same for a name that another team has and for one that nobody has. */
function noTeamOfTheirs({ command }: Asked): Omit<PolicyRefusal, "rule"> {
  return {
    toldAs: "teams",
    text: `You can't run /${command.name} with this name: no team of yours has projects of that name.`,
    hint: "`teams` in gatehouse.yml says which names are whose.",
  };
}

function channelRefusal({ policy, command, channelId }: Asked): PolicyRefusal | undefined {
  const { channels } = policy;
  if (channels === undefined || !changes.has(command.class) || channels.includes(channelId))
    return undefined;
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
    text: `${target.name} can't get this name: ${vmName} in it is pinned, and its pin, or what is accepted of it, wouldn't be the same under the new name.`,
    hint: `\`attestation.pins\` and \`attestation.appraisal\` in gatehouse.yml must say the same of the new name.${andTheyKnow(asked)}`,
  };
}

function andTheyKnow({ policy, nameOf }: Asked): string {
  return andThey("They may know more", policy.access.administer, nameOf);
}
