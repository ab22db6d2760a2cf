import type { Policy } from "../config/policy-file.ts";
import type { Target } from "../registry/define.ts";
import { approvalRule, type NeededApprovals } from "./approval-rule.ts";
import { type Asked, type PolicyRefusal, refusal } from "./refusal.ts";

/** Refused, or allowed once these approvals are given. */
export type Decision =
  | { refused: PolicyRefusal; needed?: never }
  | { refused?: never; needed: NeededApprovals };

/**
 * What policy says of one command: the only answer to "may they?". Commands, buttons, forms, rollouts, and consoles ask it,
 * and so do `can-i` and `policy explain`, which would otherwise promise something else.
 */
export function decide(asked: Asked): Decision {
  const refused = refusal(asked);
  if (refused) return { refused };
  const needed = approvalRule(asked.policy, asked);
  if (!asked.breakGlass) return { needed };
  return { needed: { ...needed, required: 0, votes: [], why: "break-glass skips approvals" } };
}

/** The same of one command on several VMs, each judged alone: a rollout skips those that are refused. */
export function decideEach(asked: Asked) {
  const judged = asked.targets.map((target) => ({
    target,
    by: refusal({ ...asked, targets: [target] }),
  }));
  return {
    allowed: judged.filter(({ by }) => by === undefined).map(({ target }) => target),
    refused: judged.flatMap(({ target, by }) => (by ? [{ target, by }] : [])),
  };
}

/** Those of several VMs that need approval, and by which rule: a rollout can't wait for it. */
export function needingApproval(
  policy: Policy,
  { command, targets }: Pick<Asked, "command" | "targets">,
): { targets: readonly Target[]; why: string } | undefined {
  const needing = targets.filter(
    (target) => approvalRule(policy, { command, targets: [target] }).required > 0,
  );
  if (needing.length === 0) return undefined;
  return { targets: needing, why: approvalRule(policy, { command, targets: needing }).why };
}
