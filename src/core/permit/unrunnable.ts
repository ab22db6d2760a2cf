import { unfilled } from "../../config/policy-sense.ts";
import { rightsOver, whoAre } from "./access.ts";
import type { NeededApprovals } from "./approval-rule.ts";
import { accessRefusal, type Asked, looserPin, mayRun, ownerOf, protection } from "./refusal.ts";
import { everyoneNamed } from "../../config/named-in-policy.ts";

/** The reason why nobody may ever run something, by gatehouse.yml alone. */
export interface Unrunnable {
  /** The place of the rule in gatehouse.yml, for the audit trail. */
  rule: string;
  title: string;
  /** Says what gatehouse.yml would have to change. */
  detail: string;
}

/** A change that is proposed. It has no person, because nobody has pressed Run yet. */
type Proposed = Pick<
  Asked,
  "policy" | "ourTeamId" | "command" | "targets" | "input" | "vms" | "nameOf"
>;

/**
 * Returns why nobody in gatehouse.yml may run it, or why too few could approve it. The rules that
 * judge a press are asked about everybody whom the file may mean. `runner` is the only person who
 * may press. Undefined when anybody may.
 */
export function withoutPeople(
  asked: Proposed,
  needed: Pick<NeededApprovals, "required" | "votes" | "index">,
  runner?: string,
): Unrunnable | undefined {
  return withoutOperators(asked) ?? withoutApprovers(asked, needed, runner);
}

/** Returns why `protect` or a pin forbids it to everybody. */
export function forbiddenToAll({ policy, ...asked }: Proposed): Unrunnable | undefined {
  const match = protection(policy, asked);
  if (match?.glob !== undefined) {
    const { target, because, glob } = match;
    const subject = because === undefined ? target.name : `${target.name} (because of ${because})`;
    return {
      rule: `protect ${glob}`,
      title: `${subject} is protected, so nobody can run /${asked.command.name} on it.`,
      detail: "`protect` in gatehouse.yml says what is.",
    };
  }
  const pinned = looserPin(policy, asked);
  if (pinned?.vmName === undefined) return undefined;
  const { target, vmName } = pinned;
  return {
    rule: "attestation.pins",
    title: `${target.name} can't get this name: ${vmName} in it is pinned, and gatehouse.yml would pin or accept something else under the new name.`,
    detail:
      "`attestation.pins` and `attestation.appraisal` in gatehouse.yml must say the same for the new name.",
  };
}

function withoutOperators(asked: Proposed): Unrunnable | undefined {
  if (operatorsOf(asked).length > 0) return undefined;
  const [anybody] = membersMeant(asked);
  const refused = anybody && accessRefusal({ ...asked, person: anybody, channelId: "" });
  if (!refused) return undefined;
  const { rule, toldAs } = refused;
  // A new name may belong to another team, and which one isn't told.
  const isOwn = asked.targets
    .filter(({ id }) => id !== "")
    .flatMap((target) => rightsOver(asked.policy, ownerOf(target)))
    .some(({ place }) => rule === `${place}.operate`);
  return {
    rule,
    title: `gatehouse.yml lets nobody run ${deedOf(asked)}.`,
    detail: `\`${(isOwn ? undefined : toldAs) ?? rule}\` must name someone who may.`,
  };
}

function withoutApprovers(
  asked: Proposed,
  { required, votes, index }: Pick<NeededApprovals, "required" | "votes" | "index">,
  runner: string | undefined,
): Unrunnable | undefined {
  const operators = runner === undefined ? operatorsOf(asked) : [runner];
  if (unfilled(votes, operators).empty.length === 0) return undefined;
  const many = required === 1 ? "1 approval" : `${required} approvals`;
  const those = required === 1 ? "it" : "them";
  return {
    rule: index === "default" ? "approvals" : `approvals[${index + 1}]`,
    title: `Too few people could approve ${deedOf(asked)}, so nobody can run it.`,
    detail: `It needs ${many}, and gatehouse.yml must name who could give ${those}. Whoever runs it doesn't count.`,
  };
}

const deedOf = ({ command, targets: [target] }: Proposed) =>
  `/${command.name}${target?.name ? ` on ${target.name}` : ""}`;

/** Returns the IDs of the people who may run it, or `*` where that may be anybody. */
function operatorsOf(asked: Proposed): readonly string[] {
  const [anybody, ...named] = membersMeant(asked);
  if (anybody && mayRun({ ...asked, person: anybody })) return ["*"];
  return named.filter((person) => mayRun({ ...asked, person })).map(({ id }) => id);
}

/**
 * Returns a member whom gatehouse.yml doesn't name, and then the members whom it does. Only Slack
 * knows who is in a group, and that changes. So each of them is taken to be in every group that the
 * file names.
 */
function membersMeant({ policy, ourTeamId }: Proposed): readonly Asked["person"][] {
  const { users, groups } = whoAre(everyoneNamed(policy));
  return ["", ...users].map((id) => ({
    id,
    teamId: ourTeamId,
    name: id,
    kind: "member" as const,
    groups,
  }));
}
