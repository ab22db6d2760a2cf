import type { Policy } from "../policy-file.ts";
import type { CommandClass } from "../registry/define.ts";
import type { Person } from "../registry/person.ts";
import type { Target } from "../registry/target.ts";
import { type AccessList, lists, listsFor } from "./access.ts";
import { protection } from "./protection.ts";
import { addToList, andThey } from "./words.ts";

export interface Asked {
  policy: Policy;
  person: Person;
  ourTeamId: string;
  command: { name: string; class: CommandClass };
  /** Empty as long as they aren't looked up: then only the person and the place decide. */
  targets: readonly Target[];
  /** Where it was asked, empty where there is no channel. */
  channelId: string;
  /** For `project delete`: the names of the VMs in it. Without them `protect` refuses, if there is any. */
  vmNames?: readonly string[];
  /** Names for ids of people and groups, for the hint. */
  nameOf?: (id: string) => string | undefined;
}

/** A no, with its reason. `text` is plain; `hint` may hold code spans; neither mentions anybody. */
export interface PolicyRefusal {
  /** Which rule says no: a place in gatehouse.yml (`access.operate`, `protect vault-*`), or `person.guest`, `person.team`… */
  rule: string;
  text: string;
  hint: string;
  /** User ids and group ids that could do it, or could let this person do it. */
  whoCanHelp: readonly string[];
  /** For `channels`: where it would be accepted. */
  channels?: readonly string[];
}

const changes: ReadonlySet<CommandClass> = new Set(["change", "disrupt", "destroy", "secret"]);

/**
 * Why a person may not run a command, or undefined when they may. The same for commands, buttons, modals and the gate
 * right before a send. Denied by default: what no rule allows is refused.
 */
export function refusal(asked: Asked): PolicyRefusal | undefined {
  const { policy, person, ourTeamId, command } = asked;
  const inLists = lists(policy, person, ourTeamId);
  const enough = listsFor(command);
  if (!enough.some((list) => inLists.includes(list))) {
    return personRefusal(asked) ?? listRefusal(asked, enough[0] ?? "administer");
  }
  return channelRefusal(asked) ?? protectRefusal(asked);
}

/** Whether this person may run the command somewhere, on something: what help shows. */
export function mayRun(asked: Omit<Asked, "targets" | "channelId">): boolean {
  const { policy, person, ourTeamId, command } = asked;
  const inLists = lists(policy, person, ourTeamId);
  return listsFor(command).some((list) => inLists.includes(list));
}

/**
 * Why a person may not run it in an emergency, past the approvals and without being an operator. Protection holds even then;
 * where it is asked does not matter then.
 */
export function breakGlassRefusal(asked: Asked): PolicyRefusal | undefined {
  const { policy, person, ourTeamId, command } = asked;
  if (!lists(policy, person, ourTeamId).includes("breakGlass")) {
    return personRefusal(asked) ?? listRefusal(asked, "breakGlass");
  }
  if (command.class !== "disrupt" && command.class !== "destroy") {
    return {
      rule: "access.breakGlass",
      text: `/${command.name} can't be run with --break-glass.`,
      hint: "It is for commands that disrupt or destroy. Run it without.",
      whoCanHelp: [],
    };
  }
  return protectRefusal(asked);
}

const kindTexts: Readonly<Record<Exclude<Person["kind"], "member">, string>> = {
  guest: "Guests can't do this from Slack.",
  bot: "Bots and workflows can't run commands: a person has to.",
  external: "This is for people of our own workspace.",
  deactivated: "This account is deactivated.",
};

/** Who somebody is comes before any list. */
function personRefusal({ policy, person, ourTeamId, nameOf }: Asked): PolicyRefusal | undefined {
  const isOurs = person.teamId === ourTeamId && ourTeamId !== "";
  if (person.kind === "member" && isOurs) return undefined;
  const kind = person.kind === "member" ? "external" : person.kind;
  return {
    rule: person.kind === "member" ? "person.team" : `person.${kind}`,
    text: kindTexts[kind],
    hint: `Full members of the workspace may, if gatehouse.yml lists them.${andThey("They can help", policy.access.operate, nameOf)}`,
    whoCanHelp: withoutEveryone(policy.access.operate),
  };
}

function listRefusal({ policy, command, nameOf }: Asked, list: AccessList): PolicyRefusal {
  const entries = withoutEveryone(policy.access[list]);
  return {
    rule: `access.${list}`,
    text: `You may not run /${command.name}: that takes access.${list} in gatehouse.yml, and you are not in it.`,
    hint: addToList(list, entries, nameOf),
    whoCanHelp: entries.length > 0 ? entries : withoutEveryone(policy.access.administer),
  };
}

function channelRefusal({ policy, command, channelId }: Asked): PolicyRefusal | undefined {
  const { channels } = policy;
  if (channels === undefined || !changes.has(command.class) || channels.includes(channelId))
    return undefined;
  return {
    rule: "channels",
    text: `/${command.name} changes something, and ${channelId === "" ? "that has to be asked in a channel" : "this channel isn't one where that is accepted"}.`,
    hint: `It is in ${channels.map((id) => `\`${id}\``).join(", ")} (\`channels\` in gatehouse.yml).`,
    whoCanHelp: withoutEveryone(policy.access.administer),
    channels,
  };
}

function protectRefusal({
  policy,
  command,
  targets,
  vmNames,
  nameOf,
}: Asked): PolicyRefusal | undefined {
  const found = protection(policy, command, targets, vmNames);
  if (!found) return undefined;
  const { target, name, glob } = found;
  const helpers = withoutEveryone(policy.access.administer);
  if (glob === undefined) {
    return {
      rule: "protect",
      text: `I can't tell which VMs ${target.name} holds, and some may be protected. So nothing was done.`,
      hint: "Try again in a minute.",
      whoCanHelp: helpers,
    };
  }
  const what = name === target.name ? name : `${target.name} (because of ${name})`;
  return {
    rule: `protect ${glob}`,
    text: `${what} is protected: it is never restored, deleted, stopped, resized or renamed from Slack.`,
    hint: `The rule is \`${glob}\` under \`protect\` in gatehouse.yml.${andThey("They may know more", policy.access.administer, nameOf)}`,
    whoCanHelp: helpers,
  };
}

function withoutEveryone(entries: readonly string[]): string[] {
  return [...new Set(entries)].filter((entry) => entry !== "*");
}
