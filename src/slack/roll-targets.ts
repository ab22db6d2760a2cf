import { UserError } from "../errors.ts";
import { isGlob } from "../inventory/glob.ts";
import type { ChangeCommand } from "../registry/define.ts";
import { isRollable } from "../registry/rolling.ts";
import type { Target } from "../registry/target.ts";
import { argumentsOf } from "../registry/usage.ts";
import { PickOne, resolveTarget, targetOf } from "./resolve.ts";
import type { Talk } from "./talk.ts";

/** Several VMs that were named in one command. */
export interface Several {
  targets: readonly Target[];
  /** As they were written. */
  words: string;
  /** Nothing that Gatehouse knows is left out. */
  isEverything: boolean;
}

/** More than so many at once is a mistake, or a job for several rolls. */
const mostTargets = 1000;

/**
 * The VMs that a command names, when it names several or uses a glob; undefined when it names one VM exactly, which runs
 * without all this. A word that isn't a VM stops everything: what was meant by the others may hang on it.
 */
export async function severalTargets(
  command: ChangeCommand,
  args: Record<string, unknown>,
  talk: Pick<Talk, "inventory">,
): Promise<Several | undefined> {
  if (!isRollable(command)) return undefined;
  const words = wordsIn(command, args);
  const globs = words.filter(isGlob);
  if (words.length < 2 && globs.length === 0) return undefined;
  const found = new Map<string, Target>();
  for (const word of words) {
    for (const target of await targetsNamed(word, talk)) found.set(target.id, target);
  }
  const targets = [...found.values()];
  if (targets.length > mostTargets) {
    throw new UserError(
      `That names ${targets.length} VMs; ${mostTargets} at once is the most. Nothing was done.`,
      "A longer name, or `project/name-*`, narrows it down.",
    );
  }
  const { vms } = await talk.inventory.state();
  return {
    targets,
    words: words.join(" "),
    isEverything: globs.length > 0 && vms > 1 && targets.length >= vms,
  };
}

function wordsIn(command: ChangeCommand, args: Record<string, unknown>): string[] {
  const named = argumentsOf(command).find(({ target }) => target !== undefined);
  const value = named ? args[named.key] : undefined;
  const words = [value].flat().filter((word) => typeof word === "string");
  return named?.isList ? words : words.flatMap((word) => word.split(",")).filter(Boolean);
}

async function targetsNamed(
  word: string,
  { inventory }: Pick<Talk, "inventory">,
): Promise<readonly Target[]> {
  if (!isGlob(word)) {
    try {
      return [await resolveTarget("vm", word, inventory)];
    } catch (error) {
      if (!(error instanceof PickOne)) throw error;
      const names = error.candidates
        .slice(0, 5)
        .map((target) => `\`${target.projectName ?? target.projectId}/${target.name}\``);
      throw new UserError(
        `${error.message} Nothing was done.`,
        `${names.join(", ")}: with several VMs each must be named exactly.`,
      );
    }
  }
  const matching = await inventory.matchVms(word);
  if (matching.length > 0) return matching.map(targetOf);
  const { vms, stale } = await inventory.state();
  throw new UserError(
    `${word} matches none of the ${vms} VMs that I know. Nothing was done.`,
    stale
      ? "What I know may be old: `/gatehouse status` shows why."
      : "`/vm list` shows them all; a glob with a slash is read as `project/name`.",
  );
}
