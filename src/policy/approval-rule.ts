import { lineWords, type Policy } from "../config/policy-file.ts";
import type { Operation } from "../config/policy-sense.ts";
import { type Command, dottedName } from "../registry/define.ts";
import { type Judged, judgedNames, type Named, ownerOf } from "./judged.ts";
import { matchesAny, matchingTarget } from "./refusal.ts";
import { type Owned, teamsOf } from "./teams.ts";
import { allNeeds, totalOf, usualNeeds, type VoteNeed } from "./vote-needs.ts";

export interface NeededApprovals {
  /** How many people other than the requester must approve; 0: it runs at once. */
  required: number;
  /** Who they must be. */
  votes: readonly VoteNeed[];
  expiresMs: number;
  /** Which entry of `approvals` decided, from 0; `default` when none matched. */
  index: number | "default";
  /** For the card and `/gatehouse why`: plain text. */
  why: string;
}

/**
 * The approvals that a request needs. The first matching entry of `approvals` decides; without one, destructive commands
 * need one approval and others none. Of several names the strictest decides. Reads and administration need none.
 */
export function approvalRule(policy: Policy, judged: Judged): NeededApprovals {
  const { command } = judged;
  const all = judgedNames(judged).map((named) => ruleFor(policy, command, named));
  const [first = ruleFor(policy, command), ...others] = all;
  const strictest = others.reduce(
    (a, b) =>
      b.required > a.required || (b.required === a.required && b.expiresMs < a.expiresMs) ? b : a,
    first,
  );
  const votes = allNeeds([first, ...others].map((one) => one.votes));
  return { ...strictest, votes, required: totalOf(votes) };
}

function ruleFor(policy: Policy, command: Command, target?: Named): NeededApprovals {
  const rule = ruleInFile(policy, command, target);
  const min = (command.kind === "change" && command.minApprovals) || 0;
  if (rule.required >= min) return rule;
  const votes = usualNeeds(policy, min, target && ownerOf(target));
  return { ...rule, required: min, votes, why: `${dottedName(command)} always needs ${min}` };
}

function ruleInFile(policy: Policy, command: Command, target?: Named): NeededApprovals {
  const owner = target && ownerOf(target);
  const operation = dottedName(command);
  const byDefault = { index: "default", expiresMs: policy.timing.approvalExpiresMs } as const;
  if (!mayNeedApproval(command)) {
    const why = `${operation} changes nothing that needs approval`;
    return { ...byDefault, required: 0, votes: [], why };
  }
  for (const [index, rule] of policy.approvals.entries()) {
    if (!matchesAny(rule.operations, operation)) continue;
    const { targets: globs } = rule;
    const meant = target && globs && matchingTarget(globs, target);
    if (globs && !meant) continue;
    const because = target?.because === undefined ? "" : ` (because of ${target.because})`;
    const on = meant ? ` on ${meant.glob}${because}` : "";
    const { required, expiresMs } = rule;
    const place = `approvals[${index + 1}] in gatehouse.yml${rule.votes ? lineWords(policy, ["approvals", index]) : ""}`;
    const from = rule.votes || required === 0 ? "" : approversIn(policy, owner);
    const why = `${place} requires ${required} for ${operation}${on}${from}`;
    return {
      required,
      votes: rule.votes ?? usualNeeds(policy, required, owner),
      expiresMs,
      index,
      why,
    };
  }
  const destroys = command.class === "destroy";
  const required = destroys ? 1 : 0;
  return {
    ...byDefault,
    required,
    votes: usualNeeds(policy, required, owner),
    why: destroys
      ? `no entry of approvals in gatehouse.yml matches ${operation}; destructive commands need one approval${approversIn(policy, owner)}`
      : `no entry of approvals in gatehouse.yml matches ${operation}`,
  };
}

/** `, of teams.payments.approve (line 12)`: where a team says who approves. */
function approversIn(policy: Policy, owner: Owned | undefined): string {
  const teams = owner ? teamsOf(policy, owner) : [];
  const places = teams.map(
    (team) => `teams.${team}.approve${lineWords(policy, ["teams", team, "approve"])}`,
  );
  return places.length === 0 ? "" : `, of ${places.join(" and ")}`;
}

/** Whether a rule of `approvals` can hold for it: it changes something, or opens a console. */
export function mayNeedApproval({ kind, class: of }: Pick<Command, "kind" | "class">): boolean {
  return kind === "change" || of === "secret";
}

/** For reading the rules of `approvals`. */
export function operationsOf(commands: readonly Command[]): readonly Operation[] {
  return commands.map((command) => ({
    name: dottedName(command),
    mayNeedApproval: mayNeedApproval(command),
  }));
}

/** The rollback guard, because a restore can undo security fixes: why it needs one more approval, or undefined. */
export function rollbackReason(restore: {
  /** Undefined for an ID typed by hand. */
  snapshot: { at: number; measurement?: string } | undefined;
  measurementNow: string | undefined;
  maxAgeMs: number | undefined;
  now: number;
}): string | undefined {
  const { snapshot, measurementNow, maxAgeMs, now } = restore;
  if (!snapshot) return "Gatehouse has no record of this snapshot";
  if (
    measurementNow !== undefined &&
    snapshot.measurement !== undefined &&
    snapshot.measurement !== measurementNow
  ) {
    return "the snapshot was taken under another measurement";
  }
  if (maxAgeMs !== undefined && now - snapshot.at > maxAgeMs) {
    return "the snapshot is older than attestation.maxSnapshotAge in gatehouse.yml";
  }
  return undefined;
}
