import { fold } from "../inventory/fold.ts";
import { matchesGlob } from "../inventory/glob.ts";
import type { Target } from "../registry/target.ts";

/** Whether a name matches one of the globs. Case is left aside: `Vault-1` is what `vault-*` means. */
export function matchesAny(globs: readonly string[], name: string): boolean {
  const folded = fold(name);
  return globs.some((glob) => matchesGlob(fold(glob), folded));
}

/**
 * The first glob that means a target, and the name it matches: the target's own, or for a VM its project's. A glob with
 * a slash means `project/name`. Ids are no names: `pro*` must not match every `proj-…`.
 */
export function matchingTarget(
  globs: readonly string[],
  { kind, name, projectName }: Target,
): { glob: string; name: string } | undefined {
  const inProject = kind === "vm" && projectName !== undefined ? projectName : undefined;
  for (const glob of globs) {
    const whole = glob.includes("/") && inProject !== undefined;
    const names = whole ? [`${inProject}/${name}`, name] : [name, inProject];
    const meant = names.find((word) => word !== undefined && matchesAny([glob], word));
    if (meant !== undefined) return { glob, name: meant };
  }
  return undefined;
}

/** `vm restore` as gatehouse.yml writes it: `vm.restore`. */
export function dottedName(command: { name: string }): string {
  return command.name.replaceAll(" ", ".");
}
