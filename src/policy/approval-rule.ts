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
  const rule = ruleInFile(policy, operation, target);
  const { name, atLeast } = operation;
  if (rule.required >= atLeast) return rule;
  const votes = usualNeeds(policy, atLeast, target && ownerOf(target));
  return { ...rule, required: atLeast, votes, why: `${name} always needs ${atLeast}` };
}

function ruleInFile(policy: Policy, of: Operation, target?: Named): NeededApprovals {
  const owner = target && ownerOf(target);
  const operation = of.name;
  const byDefault = { index: "default", expiresMs: policy.timing.approvalExpiresMs } as const;
  if (!of.mayNeedApproval) {
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
  const required = of.byDefault;
  return {
    ...byDefault,
    required,
    votes: usualNeeds(policy, required, owner),
    why:
      required > 0
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
