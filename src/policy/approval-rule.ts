import type { Policy } from "../policy-file.ts";
import type { CommandClass } from "../registry/define.ts";
import type { Target } from "../registry/target.ts";
import { dottedName, matchesAny, matchingTarget } from "./matches.ts";

export interface NeededApprovals {
  /** How many people other than the requester have to approve; 0: it runs at once. */
  required: number;
  expiresMs: number;
  /** Which entry of `approvals` decided, from 0; `default` when none matched. */
  index: number | "default";
  /** For the card and `/gatehouse why`: plain text. */
  why: string;
}

/**
 * The approvals that a request needs. The first entry of `approvals` that matches the command and the target decides;
 * without one, what destroys needs one approval and everything else none. Of several targets the strictest decides.
 * Reading and administering never wait for approval.
 */
export function approvalRule(
  policy: Policy,
  command: { name: string; class: CommandClass },
  targets: readonly Target[],
): NeededApprovals {
  const candidates =
    targets.length === 0
      ? [ruleFor(policy, command)]
      : targets.map((target) => ruleFor(policy, command, target));
  return candidates.reduce((strictest, rule) => (isStricter(rule, strictest) ? rule : strictest));
}

function isStricter(a: NeededApprovals, b: NeededApprovals): boolean {
  return a.required > b.required || (a.required === b.required && a.expiresMs < b.expiresMs);
}

function ruleFor(
  policy: Policy,
  command: { name: string; class: CommandClass },
  target?: Target,
): NeededApprovals {
  const operation = dottedName(command);
  const byDefault = { index: "default", expiresMs: policy.timing.approvalExpiresMs } as const;
  if (command.class === "read" || command.class === "administer") {
    return { ...byDefault, required: 0, why: `${operation} changes nothing that needs approval` };
  }
  for (const [index, rule] of policy.approvals.entries()) {
    if (!matchesAny(rule.operations, operation)) continue;
    const { targets: globs } = rule;
    const meant = target && globs && matchingTarget(globs, target);
    if (globs && !meant) continue;
    const on = meant ? ` on ${meant.glob}` : "";
    const why = `approvals[${index + 1}] in gatehouse.yml asks for ${rule.required} for ${operation}${on}`;
    return { required: rule.required, expiresMs: rule.expiresMs, index, why };
  }
  const destroys = command.class === "destroy";
  return {
    ...byDefault,
    required: destroys ? 1 : 0,
    why: destroys
      ? `no entry of approvals in gatehouse.yml matches ${operation}; what destroys needs one`
      : `no entry of approvals in gatehouse.yml matches ${operation}`,
  };
}
