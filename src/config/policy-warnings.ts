import { coversGlob, isGlob, matchesGlob } from "../text/glob.ts";
import type { Policy } from "./policy-file.ts";
import { decidesBefore } from "./policy-sense.ts";

/** A rule that a policy may have, although hardly anyone means it. */
export interface PolicyWarning {
  /** The place in the file. */
  path: readonly (string | number)[];
  text: string;
  mend: string;
}

export const policyWarnings = (policy: Policy): readonly PolicyWarning[] => [
  ...withoutThaw(policy),
  ...withoutApproval(policy),
];

/** A freeze ends only by an administrator, and Gatehouse itself freezes when a key is refused. */
function withoutThaw({ access, teams }: Policy): readonly PolicyWarning[] {
  const isChanging = [access, ...Object.values(teams)].some(
    ({ operate, approve, breakGlass }) => operate.length + approve.length + breakGlass.length > 0,
  );
  if (!isChanging || access.administer.length > 0) return [];
  return [
    {
      path: ["access", "administer"],
      text: "access.administer names no one: nobody can thaw changes once they are frozen",
      mend: "Name the people or groups that may: Gatehouse itself freezes when the compute service refuses its key.",
    },
  ];
}

/** Globs that exempt destructive commands on everything, although the file doesn't name these. */
function withoutApproval({ approvals, operations }: Policy): readonly PolicyWarning[] {
  const guarded = operations.filter(({ byDefault, atLeast }) => byDefault > 0 && atLeast === 0);
  return approvals.flatMap((rule, index) => {
    const isAnywhere = rule.targets?.every((target) => !coversGlob(target, "*")) !== true;
    if (rule.required > 0 || !isAnywhere) return [];
    const earlier = approvals.slice(0, index);
    const exempt = guarded
      .map(({ name }) => name)
      .filter((name) => !rule.operations.includes(name))
      .filter((name) => !earlier.some((other) => decidesBefore(other, rule, name)));
    return rule.operations.flatMap((glob, at) => {
      const names = isGlob(glob) ? exempt.filter((name) => matchesGlob(glob, name)) : [];
      if (names.length === 0) return [];
      return [
        {
          path: ["approvals", index, "operations", at],
          text: `approvals[${index + 1}].operations[${at + 1}] (${glob}) lets ${inList.format(names)} run without approval`,
          mend: "Put an entry that asks for approvals of these before it, or name them in it if that is meant.",
        },
      ];
    });
  });
}

const inList = new Intl.ListFormat("en-US");
