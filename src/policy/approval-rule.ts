import { lineWords, type Operation, type Policy } from "../config/policy-file.ts";
import { type Command, dottedName } from "../registry/define.ts";
import { type Judged, judgedNames, type Named, ownerOf, renamed } from "./judged.ts";
import { matchesAny, matchingTarget } from "./target-globs.ts";
import { type Owned, teamsOf } from "./teams.ts";
import { allNeeds, covers, totalOf, usualNeeds, type VoteNeed } from "./vote-needs.ts";

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
 * need one approval and others none. Of several names the strictest decides. Reads and administration need none. A rename
 * needs what every rule asks that it leads out of: otherwise it would be the way round them.
 */
export function approvalRule(policy: Policy, judged: Judged): NeededApprovals {
  const operation = operationOf(judged.command);
  const own = judgedNames(judged).map((named) => ruleFor(policy, operation, named));
  const [first = ruleFor(policy, operation), ...others] = [...own, ...rulesLeft(policy, judged)];
  const strictest = others.reduce(
    (a, b) =>
      b.required > a.required || (b.required === a.required && b.expiresMs < a.expiresMs) ? b : a,
    first,
  );
  const votes = allNeeds([first, ...others].map((one) => one.votes));
  return { ...strictest, votes, required: totalOf(votes) };
}

/** The rules, for any operation, that a target has under its name of now and hasn't under its new one. */
function rulesLeft(policy: Policy, judged: Judged): readonly NeededApprovals[] {
  return renamed(judged).flatMap(({ before, after }) =>
    policy.operations.flatMap((operation) => {
      const [now, then] = [before, after].map((named) => ruleFor(policy, operation, named));
      if (!now || !then || covers(then.votes, now.votes)) return [];
      return [{ ...now, why: `${now.why}, and ${after.because} leads out of that` }];
    }),
  );
}

function ruleFor(policy: Policy, operation: Operation, target?: Named): NeededApprovals {
  const { name, atLeast } = operation;
  const rule = ruleInFile(policy, operation, target);
  const required = Math.max(rule.required, atLeast);
  const isRaised = required > rule.required;
  const named = isRaised ? undefined : rule.votes;
  const votes = named ?? usualNeeds(policy, required, target && ownerOf(target));
  const why = isRaised ? `${name} always needs ${atLeast}` : rule.why;
  return { ...rule, required, votes, why };
}

/** `votes` only where an entry names who they must be. */
function ruleInFile(policy: Policy, operation: Operation, target?: Named) {
  const { name, byDefault } = operation;
  const { approvalExpiresMs: expiresMs } = policy.timing;
  const usual = { index: "default", votes: undefined, expiresMs } as const;
  if (!operation.mayNeedApproval)
    return { ...usual, required: 0, why: `${name} changes nothing that needs approval` };
  const approvers = () => approversIn(policy, target && ownerOf(target));
  for (const [index, rule] of policy.approvals.entries()) {
    const { operations, targets: globs, required, votes } = rule;
    if (!matchesAny(operations, name)) continue;
    const meant = target && globs && matchingTarget(globs, target);
    if (globs && !meant) continue;
    const because = target?.because === undefined ? "" : ` (because of ${target.because})`;
    const on = meant ? ` on ${meant.glob}${because}` : "";
    const line = votes ? lineWords(policy, ["approvals", index]) : "";
    const from = votes || required === 0 ? "" : approvers();
    const why = `approvals[${index + 1}] in gatehouse.yml${line} requires ${required} for ${name}${on}${from}`;
    return { index, required, votes, expiresMs: rule.expiresMs, why };
  }
  const why = `no entry of approvals in gatehouse.yml matches ${name}`;
  const all = byDefault === 0 ? "" : `; destructive commands need one approval${approvers()}`;
  return { ...usual, required: byDefault, why: why + all };
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
  return commands.map(operationOf);
}

function operationOf(command: Command): Operation {
  return {
    name: dottedName(command),
    mayNeedApproval: mayNeedApproval(command),
    byDefault: command.class === "destroy" ? 1 : 0,
    atLeast: (command.kind === "change" && command.minApprovals) || 0,
  };
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
