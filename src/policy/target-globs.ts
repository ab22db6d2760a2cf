import type { Target } from "../registry/define.ts";
import { compileGlob, fold } from "../text/glob.ts";

type Named = Pick<Target, "kind" | "name" | "projectName">;

/**
 * Whether one of the globs names a VM or project, ignoring case, as in `protect`: by its name, for a VM by its project's too, and
 * with a slash by `project/name`. `payments/*` names the project as well. Compiled once, for many.
 */
export function compileTargetGlobs(globs: readonly string[]): (target: Named) => boolean {
  const compiled = globs.map((glob) => {
    const isWhole = glob.includes("/");
    const matches = compileGlob(fold(glob));
    const ofProject = glob.endsWith("/*") ? compileGlob(fold(glob.slice(0, -2))) : matches;
    return { isWhole, matches, ofProject };
  });
  return ({ kind, name, projectName }) => {
    const own = fold(name);
    const project = projectName === undefined ? undefined : fold(projectName);
    return compiled.some(({ isWhole, matches, ofProject }) => {
      if (kind === "project") return ofProject(own);
      if (matches(own)) return true;
      if (project === undefined) return false;
      return isWhole ? matches(`${project}/${own}`) : matches(project);
    });
  };
}
