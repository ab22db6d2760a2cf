import type { Vm } from "../../fleet/compute/compute.ts";
import { UserError } from "../../errors.ts";
import type { Inventory, KnownProject, KnownVm } from "../../fleet/inventory/inventory.ts";
import { duration, firstFew } from "../../messages/markdown.ts";
import { type Asker, type Viewing, checkAsking } from "../permit/permit.ts";
import { type Command, type Target, calledName, targetArgument } from "../../registry/define.ts";
import {
  type ChangeInvocation,
  type Input,
  mayNameSeveral,
  targetWords,
} from "../../registry/invocation.ts";
import { compileTargetGlobs } from "../permit/refusal.ts";
import { isGlob } from "../../text/glob.ts";

type Named = Pick<ChangeInvocation, "command" | "input">;
type WithInventory = { inventory: Inventory };

/** Several names match, or only similar ones, so the person picks. */
export class PickOne extends UserError {
  readonly candidates: readonly Target[];
  readonly isAmbiguous: boolean;

  constructor(message: string, candidates: readonly Target[], isAmbiguous: boolean) {
    super(message);
    this.candidates = candidates;
    this.isAmbiguous = isAmbiguous;
  }
}

/** A list that was read within this time needs no word about its age (ms). */
const newMs = 5_000;

/** Exactly one VM or project, by ID, name, or `project/name`. Throws PickOne or UserError. */
export async function resolveTarget(
  asker: Asker,
  kind: "vm" | "project",
  words: string,
  inventory: Inventory,
): Promise<Target> {
  checkAsking(asker);
  const match = kind === "vm" ? await inventory.findVm(words) : await inventory.findProject(words);
  if ("record" in match) return withSharedName(targetOf(match.record), inventory);
  const noun = kind === "vm" ? "VM" : "project";
  if ("ambiguous" in match) {
    const candidates = match.ambiguous.map(targetOf);
    const which = `${candidates.length} ${noun}s are called ${words}. Which one?`;
    throw new PickOne(which, candidates, true);
  }
  const { refreshedAt } = await inventory.state();
  const ageMs = refreshedAt === undefined ? 0 : Date.now() - refreshedAt;
  const known = ageMs > newMs ? ` Gatehouse read the list ${duration(ageMs)} ago.` : "";
  const none = `There is no ${noun} called ${words}.${known}`;
  if (match.unknown.length > 0)
    throw new PickOne(`${none} Did you mean…`, match.unknown.map(targetOf), false);
  throw new UserError(none, `\`/${kind} list\` shows every ${noun} you can see.`);
}

/** Whether another VM that is known has its name. */
async function withSharedName(target: Target, inventory: Inventory): Promise<Target> {
  if (target.kind !== "vm") return target;
  const same = await inventory.findVm(target.name, { onlyKnown: true });
  return "ambiguous" in same ? { ...target, sharesName: true } : target;
}

/** The single target of a change. A project to create has no ID yet. */
export async function resolveOne(
  asker: Asker,
  asked: Named,
  { inventory }: WithInventory,
): Promise<Target> {
  const { command, input } = asked;
  if (command.on === "new-project") {
    const name = typeof input["name"] === "string" ? input["name"] : "";
    return { kind: "project", id: "", name, projectId: "", status: "" };
  }
  const [words] = targetWords(asked);
  if (words === undefined)
    throw new UserError("No target is named.", `Try \`${command.example}\`.`);
  return resolveTarget(asker, command.on, words, inventory);
}

/**
 * The targets that a refused command names, as far as they are known and this inventory shows them
 * to the person. A name that nobody has and one that they don't see are left out alike: nothing is
 * asked of the compute service, so the answer takes as long for both.
 */
export async function targetsOfRefused(
  viewing: Viewing,
  asked: { command: Command; input: Input },
  { inventory }: WithInventory,
): Promise<readonly Target[]> {
  checkAsking(viewing);
  const kind = targetArgument(asked.command)?.target;
  if (kind === undefined) return [];
  const words = targetWords(asked).slice(0, mostNamedInRefusal);
  const how = { onlyKnown: true };
  const each = await Array.fromAsync(words, async (word) => {
    if (kind === "vm" && isGlob(word))
      return inventory.vms().then((all) => all.filter(named(word)));
    const match =
      kind === "vm" ? await inventory.findVm(word, how) : await inventory.findProject(word, how);
    return "record" in match ? [match.record] : [];
  });
  const known = new Map(each.flat().map((candidate) => [candidate.id, targetOf(candidate)]));
  return Promise.all([...known.values()].map((target) => withSharedName(target, inventory)));
}

/** The most words whose targets are looked up for the words of a refusal. */
const mostNamedInRefusal = 20;

function named(glob: string): (vm: KnownVm) => boolean {
  const matches = compileTargetGlobs([glob]);
  return (vm) => matches({ kind: "vm", ...vm });
}

export interface Several {
  targets: readonly Target[];
  /** The words as they were typed. */
  words: string;
  /** Whether a glob names all VMs that this person can see. */
  isEverything: boolean;
}

const maxTargets = 1000;

/** The VMs of a command that names several or uses a glob; undefined for one. */
export async function resolveSeveral(
  asker: Asker,
  asked: Named,
  { inventory }: WithInventory,
): Promise<Several | undefined> {
  if (!mayNameSeveral(asked.command)) return undefined;
  const isList = targetArgument(asked.command)?.isList === true;
  const words = targetWords(asked).flatMap((word) =>
    isList ? word : word.split(",").filter(Boolean),
  );
  const hasGlob = words.some(isGlob);
  if (words.length < 2 && !hasGlob) return undefined;
  const targets = await vmsNamed(asker, words, inventory);
  const { vms } = await inventory.state();
  const isEverything = hasGlob && vms > 1 && targets.length >= vms;
  return { targets, words: words.join(" "), isEverything };
}

/** The refusal where nothing takes several targets. */
export const takesOne = ({ name }: Pick<Command, "name">, targets: readonly Target[]) =>
  new UserError(
    `Here /${name} takes one VM, not a list or a glob. Nothing was done.`,
    `Run it for each: ${firstFew(targets.map(calledName), 10)}.`,
  );

/**
 * Returns the VMs that these words and globs name, each once. A word that names no VM is refused.
 */
export async function vmsNamed(asker: Asker, words: readonly string[], inventory: Inventory) {
  checkAsking(asker);
  const all = await Array.fromAsync(words, (word) => targetsNamed(asker, word, inventory));
  const targets = [...new Map(all.flat().map((target) => [target.id, target])).values()];
  if (targets.length <= maxTargets) return targets;
  throw new UserError(
    `That names ${targets.length} VMs; ${maxTargets} is the limit. Nothing was done.`,
    "Use a longer name or `project/name-*` to match fewer.",
  );
}

async function targetsNamed(
  asker: Asker,
  word: string,
  inventory: Inventory,
): Promise<readonly Target[]> {
  if (!isGlob(word)) {
    try {
      return [await resolveTarget(asker, "vm", word, inventory)];
    } catch (error) {
      if (!(error instanceof PickOne)) throw error;
      const names = error.candidates
        .slice(0, 5)
        .map((target) => `\`${target.projectName ?? target.projectId}/${target.name}\``);
      throw new UserError(
        `${error.message} Nothing was done.`,
        `${names.join(", ")}: each of several VMs must be named exactly.`,
      );
    }
  }
  const matching = await inventory.matchVms(word);
  if (matching.length > 0)
    return Promise.all(matching.map((vm) => withSharedName(targetOf(vm), inventory)));
  const { vms, stale } = await inventory.state();
  throw new UserError(
    `${word} matches none of the ${vms} VMs you can see. Nothing was done.`,
    stale
      ? "This list may be outdated: `/gatehouse status` shows why."
      : "`/vm list` shows them all; a glob with a slash means `project/name`.",
  );
}

/** Lists the VMs in these projects, because rules such as `protect` cover them, too. */
export async function vmsWithin(
  targets: readonly Target[],
  { inventory }: WithInventory,
): Promise<KnownVm[]> {
  const lists = await Promise.all(
    targets
      .filter(({ kind, id }) => kind === "project" && id !== "")
      .map(({ id }) => inventory.vms({ projectId: id })),
  );
  return lists.flat();
}

export function targetOf(known: KnownVm | KnownProject): Target {
  if ("projectId" in known)
    return targetOfVm(known as KnownVm & { specs?: Vm["specs"] }, known.projectName);
  const { id, name, status, createdAt } = known;
  return { kind: "project", id, name, projectId: id, status, ...(createdAt ? { createdAt } : {}) };
}

export function targetOfVm(vm: Vm, projectName: string): Target {
  return { kind: "vm", ...vmFields(vm), projectName };
}

/** The VM as read when its target was resolved. */
export function vmOf(target: Target): Vm {
  return vmFields(target);
}

function vmFields({ id, name, projectId, status, createdAt, specs }: Vm | Target) {
  const known = { ...(createdAt ? { createdAt } : {}), ...(specs ? { specs } : {}) };
  return { id, name, projectId, status, ...known };
}
