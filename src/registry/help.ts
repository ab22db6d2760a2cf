import { fold } from "../text/fold.ts";
import type { Message } from "../messages/blocks.ts";
import type { ButtonSpec } from "../messages/buttons.ts";
import { lineList, type List, sentence, card } from "../messages/card.ts";
import { lines, Markdown, md, name } from "../messages/markdown.ts";
import { waysRow, type SaidPart, paragraph, rule } from "../messages/parts.ts";
import { nearest } from "../text/nearest.ts";
import { commandsWithRole, commandWithRole } from "./command-roles.ts";
import {
  type Command,
  type CommandClass,
  describedForPeople,
  dottedName,
  verbsOf,
  argumentsOf,
  flagName,
  targetArgument,
  usageOf,
} from "./define.ts";

const interactions: Readonly<Record<CommandClass, string>> = {
  read: "",
  change: "",
  disrupt: "interrupts what runs there",
  destroy: "destroys data: asks you to type the name, and others to approve",
  secret: "shown only to you",
  administer: "for administrators",
};

const all = "all";
const everydayCount = 5;

/** A command that a person may not run, and who may. */
export interface Withheld {
  command: Command;
  /** `Only @oncall can restart VMs.` */
  who: Markdown;
  /** The rule in gatehouse.yml that says so. */
  rule: Markdown;
  /** Whether the person may run it with `--break-glass`. */
  isForEmergencies: boolean;
}

/**
 * Help about the commands that a person may run: the most common ones, and the others behind a
 * button. With a topic (`vm`, `vm restart`, `pins`, `all`) only about that topic. What the person
 * may not run is explained only when it is asked for.
 */
export function renderHelp(
  commands: readonly Command[],
  topic = "",
  exampleOf: ExampleOf = ({ example }) => example,
  inEmergency?: Markdown,
  withheld: readonly Withheld[] = [],
): Message {
  const wanted = fold(topic.trim()).replace(/^\/+/, "");
  const wantedCommand = commands.find((command) => namesOf(command).includes(wanted));
  if (wantedCommand) return renderOne(wantedCommand, exampleOf(wantedCommand));
  const other = withheld.find(({ command }) => namesOf(command).includes(wanted));
  if (other) return renderWithheld(other, exampleOf, inEmergency);
  const isTopic = wanted !== "" && wanted !== all;
  const isMeant = (command: Command) =>
    [command.name, ...verbsOf(command)].some((words) => `${words} `.startsWith(`${wanted} `));
  const shown = isTopic ? commands.filter(isMeant) : commands;
  const [only] = shown;
  if (!only) {
    const meant = isTopic ? withheld.filter(({ command }) => isMeant(command)) : [];
    const [first, second] = meant;
    if (first && !second) return renderWithheld(first, exampleOf, inEmergency);
    if (first) return whatOthersRun(meant);
    return noSuchTopic(wanted, commands, withheld);
  }
  if (isTopic && shown.length === 1) return renderOne(only, exampleOf(only));
  const help = commandWithRole(commands, "help");
  const isFirst = wanted === "" && help !== undefined && commands.length > everydayCount;
  return card({
    heading: "What you can run",
    push: md`What you can run with Gatehouse`,
    body: [
      ...(isFirst ? everyday(commands, help, exampleOf) : inFull(shown, help)),
      paragraph(lines(namingLine(commands, exampleOf), inEmergency)),
    ],
  });
}

/** The most common commands as examples rather than usages, because examples work as they are. */
function everyday(commands: readonly Command[], help: Command, exampleOf: ExampleOf): SaidPart[] {
  const usual = new Set([...commandsWithRole(commands, "everyday"), ...commands]);
  const chosen = new Set([...usual].slice(0, everydayCount));
  const rows = commands
    .filter((command) => chosen.has(command))
    .map((command) => described(exampleOf(command), command));
  const more = helpButton(help, `All ${commands.length} commands`, all);
  return [paragraph(lines(...rows)), waysRow([more])];
}

/** All commands grouped by their first words, with a button for each whose usage doesn't fit. */
function inFull(shown: readonly Command[], help: Command | undefined): (List | SaidPart)[] {
  const byRoot = rootsOf(shown).map((root) => {
    const ofRoot = shown.filter((command) => command.name.startsWith(`${root} `));
    const rows = ofRoot.map((command) => described(shortUsage(command), command));
    return lineList([md`*/${root}*`, ...rows], {
      rest: (left) =>
        md`… ${Math.min(left, rows.length)} more of /${root}: ${name(`/gatehouse help ${root}`)} lists them.`,
    });
  });
  const more = shown
    .filter((command) => shortUsage(command).endsWith("…"))
    .flatMap((command, index) =>
      help ? helpButton(help, `/${command.name} …`, command.name, index) : [],
    );
  return [...byRoot, waysRow(more), rule];
}

type ExampleOf = (command: Command) => string;

/** The names by which somebody may ask for help: `vm restart`, `vm reboot`. */
function namesOf(command: Command): string[] {
  const root = command.name.split(" ")[0] ?? "";
  return verbsOf(command).map((verb) => `${root} ${verb}`);
}

function helpButton(help: Command, label: string, topic: string, index = 0): ButtonSpec {
  const [key = ""] = Object.keys(help.args.shape);
  const action = `run:${dottedName(help)}:${index}`;
  return { label, action, value: JSON.stringify({ [key]: topic }) };
}

function namingLine(commands: readonly Command[], exampleOf: ExampleOf): Markdown {
  const commandOnTarget = commands.find((command) => targetArgument(command)?.isOptional === false);
  const thread =
    commandOnTarget &&
    md` In a thread, write ${name(exampleOf(commandOnTarget).replace("/", "@gatehouse "))}.`;
  const [first] = commands;
  const topic = commandOnTarget ?? first;
  const details =
    topic && md` ${name(`/gatehouse help ${topic.name}`)} shows details of one command.`;
  return md`Name a VM or project by its ID, its name, or ${name("project/name")}.${details ?? ""}${thread ?? ""}`;
}

/** Several commands that the person may not run, each with who may. */
function whatOthersRun(withheld: readonly Withheld[]): Message {
  const rows = withheld.map(
    ({ command, who }) => md`${described(shortUsage(command), command)}. ${who}`,
  );
  return card({ heading: "What others can run", body: [lineList(rows)] });
}

function renderWithheld(
  { command, who, rule: policyRule, isForEmergencies }: Withheld,
  exampleOf: ExampleOf,
  inEmergency: Markdown | undefined,
): Message {
  const explained = renderOne(command, exampleOf(command), isForEmergencies && inEmergency);
  return card({ title: who, body: [explained], meta: [policyRule] });
}

function noSuchTopic(
  wanted: string,
  commands: readonly Command[],
  withheld: readonly Withheld[],
): Message {
  if (commands.length === 0) {
    return sentence(
      md`You can't run anything here. The team that runs Gatehouse can add you to ${name("gatehouse.yml")}.`,
    );
  }
  const explained = [...commands, ...withheld.map(({ command }) => command)];
  const flag = `--${wanted.replace(/^-+/, "")}`;
  const takers = explained.filter((command) =>
    argumentsOf(command).some(({ isFlag, key }) => isFlag && flagName(key) === flag),
  );
  if (takers.length > 0) return flagHelp(flag, takers);
  const names = explained.map((command) => command.name);
  const near = nearest(wanted, [...names, ...rootsOf(explained), ...explained.flatMap(verbsOf)]);
  const way = near
    ? md`Did you mean ${name(`/gatehouse help ${near}`)}?`
    : md`${name("/gatehouse help")} lists what you can run.`;
  return sentence(md`There is no help on ${name(wanted.slice(0, 60))}. ${way}`);
}

/** A topic that is a flag: the commands that take it, each with what it does there. */
function flagHelp(flag: string, takers: readonly Command[]): Message {
  const rows = takers.flatMap((command) =>
    argumentsOf(command)
      .filter(({ isFlag, key }) => isFlag && flagName(key) === flag)
      .map((argument) => md`${name(`/${command.name}`)} ${describedForPeople(argument) ?? ""}`),
  );
  return card({ title: md`${name(flag)} belongs to:`, body: [lineList(rows)] });
}

export function rootsOf(commands: readonly Command[]): string[] {
  return [...new Set(commands.map((command) => command.name.split(" ")[0] ?? ""))];
}

const shortUsage = (command: Command) => usageOf(command, 100);

/** A note about the class of a command, and for whom it is. */
function noteOf(command: Command): string {
  const isForApprovers = command.kind === "read" && command.approversToo === true;
  return isForApprovers ? "for administrators and approvers" : interactions[command.class];
}

function described(words: string, command: Command): Markdown {
  const note = noteOf(command) === "" ? md`` : md` _(${noteOf(command)})_`;
  return md`${name(words)} ${command.summary}${note}`;
}

function renderOne(command: Command, example: string, also: Markdown | false = false): Message {
  const details = argumentsOf(command).map((argument) => {
    const shown = argument.isFlag ? flagName(argument.key) : argument.key;
    const description =
      describedForPeople(argument) ??
      (argument.choices ? `one of ${argument.choices.join(", ")}` : "");
    return md`• ${name(shown)}${argument.isOptional ? " (optional)" : ""} ${description}`;
  });
  const aliases = namesOf(command).slice(1);
  const note = noteOf(command).replace(/^(shown|for)/, "is $1");
  const about = [
    md`${command.summary}.${note === "" ? "" : ` It ${note}.`}`,
    ...details,
    aliases.length > 0 && md`Also: ${aliases.map((alias) => `/${alias}`).join(", ")}`,
    md`For example: ${name(example)}`,
    also,
  ];
  return card({
    title: name(usageOf(command), 1000),
    push: md`${usageOf(command)}: ${command.summary}`,
    lines: about,
  });
}
