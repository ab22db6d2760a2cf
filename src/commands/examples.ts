import type { Policy } from "../config/policy-file.ts";
import type { Inventory, KnownProject, KnownVm } from "../fleet/inventory/inventory.ts";
import { isProtected } from "../core/permit/permit.ts";
import { type Command, argumentsOf, isChange, targetArgument } from "../registry/define.ts";
import { type Invocation, targetWords } from "../registry/invocation.ts";
import { type Parsed, parseCommand } from "../registry/parse.ts";
import { targetOf } from "../core/submit/resolve-targets.ts";

/** How many VMs or projects of a large fleet are tried, so that help takes no longer there. */
const mostTried = 50;

/**
 * The examples of commands with names from this workspace, so that they work as they are. Pass an
 * inventory restricted to what the reader may see.
 */
export async function examplesHere({
  commands,
  inventory,
  policy,
}: {
  commands: readonly Command[];
  inventory: Inventory;
  policy: Policy;
}): Promise<(command: Command) => string> {
  const read = Promise.all([inventory.vms(), inventory.projects()]);
  // Before the first list is read, help must work nevertheless.
  const [vms, projects] = await read.catch((): [[], []] => [[], []]);

  /** The VM's name, with its project if another VM has that name. */
  function nameOf({ id, name, projectName }: KnownVm): string {
    const isShared = vms.some((other) => other.name === name && other.id !== id);
    return isShared ? `${projectName}/${name}` : name;
  }

  function vmFor(command: Command): string | undefined {
    const wanted = isChange(command) && command.on === "vm" ? command.offeredIn : ["RUNNING"];
    const firstIn = (statuses: readonly string[] | undefined) =>
      vms
        .values()
        .filter((vm) => (statuses?.includes(vm.status) ?? true) && isPlain(vm))
        .take(mostTried)
        .find((vm) => !isProtected({ command, targets: [targetOf(vm)] }, policy));
    // RUNNING comes first, because people know those VMs best, and a restart of one in ERROR may be
    // refused.
    const vm = firstIn(wanted?.slice(0, 1)) ?? firstIn(wanted);
    return vm && nameOf(vm);
  }

  function projectFor(command: Command): string | undefined {
    // For a command that only reads, a project in which there is something to see.
    const full = isChange(command) ? undefined : vms.find(isPlain)?.projectName;
    const suits = (project: KnownProject) => {
      const within = vms.filter(({ projectId }) => projectId === project.id);
      return !isProtected({ command, targets: [targetOf(project)], vms: within }, policy);
    };
    return full ?? projects.values().filter(isPlain).take(mostTried).find(suits)?.name;
  }

  function wordsHere(words: string, parsed: Parsed): string {
    if ("refusal" in parsed) return words;
    const globs = argumentsOf(parsed.command).find(({ isGlobs }) => isGlobs);
    const matching = globs && parsed.input[globs.key];
    const full = vms.find(isPlain)?.projectName;
    if (typeof matching === "string" && full !== undefined)
      return words.replace(` ${matching}`, ` ${full}/*`);
    const rest = argumentsOf(parsed.command).find(({ isRest }) => isRest);
    const text = rest && parsed.input[rest.key];
    if (typeof text === "string")
      return words.replace(` ${text}`, ` ${wordsHere(text, parseCommand(text, commands))}`);
    const [old] = targetWords(parsed);
    if (old === undefined) return words;
    const kind = targetArgument(parsed.command)?.target;
    const known = kind === "vm" ? vmFor(parsed.command) : projectFor(parsed.command);
    return known === undefined
      ? words
      : withoutPicked(words, parsed).replace(` ${old}`, ` ${known}`);
  }

  return (command) => {
    const words = command.example.replace(/^\//, "");
    const parsed = parsedExamples.get(command) ?? parseCommand(words, commands);
    parsedExamples.set(command, parsed);
    return `/${wordsHere(words, parsed)}`;
  };
}

/** Examples never change, and help, which is asked for most, shows several. */
const parsedExamples = new WeakMap<Command, Parsed>();

/** Whether a name needs no quotes and reads back as itself. */
function isPlain({ name, projectName = "x" }: { name: string; projectName?: string }): boolean {
  return [name, projectName].every((text) => /^[\p{L}\p{N}][\w.-]{0,60}(?<![.])$/u.test(text));
}

/**
 * The example without what its form offers to choose, such as a snapshot's ID, which is different
 * everywhere.
 */
function withoutPicked(words: string, { command, input }: Pick<Invocation, "command" | "input">) {
  const picked = argumentsOf(command).find(({ picker }) => picker !== undefined);
  const value = picked && input[picked.key];
  return typeof value === "string" ? words.replace(` ${value}`, "") : words;
}
