import { matchesGlob } from "../text/glob.ts";
import { nearest } from "../text/nearest.ts";
import type { Nonsense, Operation } from "./policy-section.ts";

/**
 * The globs of a list that match none of the commands in `among`. `isOther` ends the sentence about
 * a glob that matches only commands outside `among`.
 */
export function operationsAmiss(
  globs: readonly string[],
  path: Nonsense["path"],
  known: { among: readonly Operation[]; operations: readonly Operation[]; isOther: string },
): readonly Nonsense[] {
  const names = known.among.map(({ name }) => name);
  return globs.flatMap((glob, at) => {
    const place = [...path, at];
    if (names.some((name) => matchesGlob(glob, name))) return [];
    if (known.operations.some(({ name }) => matchesGlob(glob, name)))
      return [{ path: place, message: `(${glob}) ${known.isOther}` }];
    const meant = names.find((name) => name.endsWith(`.${glob}`)) ?? nearest(glob, names);
    const rest = meant ? `did you mean ${meant}?` : `known are ${names.join(", ")}`;
    return [{ path: place, message: `(${glob}) is not a command; ${rest}` }];
  });
}

/** Callers of the API that can't be told apart because they use the same credential (`by`). */
export const sharedAmong = (
  callers: readonly { name: string; credential: string; path: Nonsense["path"] }[],
  relation: string,
): Nonsense[] =>
  [...Map.groupBy(callers, ({ credential }) => credential).values()].flatMap(([first, ...others]) =>
    others.map(({ path }) => {
      return { path, message: `${relation} ${first?.name}, too: each caller needs its own` };
    }),
  );
