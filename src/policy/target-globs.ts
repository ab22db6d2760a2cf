import type { Target } from "../registry/define.ts";
import { compileGlob, fold, matchesGlob } from "../text/glob.ts";

type Named = Pick<Target, "kind" | "name" | "projectName">;

/** Whether a name matches one of the globs, ignoring case: `vault-*` matches `Vault-1`. */
export function matchesAny(globs: readonly string[], name: string): boolean {
  const folded = fold(name);
  return globs.some((glob) => matchesGlob(fold(glob), folded));
}

/** The first glob that names a target, and the name it matches (`compileTargetGlob`). */
export function matchingTarget(
  globs: readonly string[],
  target: Named,
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
export function compileTargetGlobs(globs: readonly string[]): (target: Named) => boolean {
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
function compileTargetGlob(glob: string): (target: Named) => string | undefined {
  const matches = compileGlob(fold(glob));
  return ({ kind, name, projectName }) => {
    const inProject = kind === "vm" ? projectName : undefined;
    const isWhole = glob.includes("/") && inProject !== undefined;
    const names = isWhole ? [`${inProject}/${name}`, name] : [name, inProject];
    return names.find((word) => word !== undefined && matches(fold(word)));
  };
}
