import { isFullMember, whoAre } from "../../policy/access.ts";
import { approversRefusal, calledIn, isSamePerson, isUsual } from "../../policy/approval-rule.ts";
import {
  type Approvals,
  type Permit,
  type Restoring,
  raiseForRestore,
} from "../../policy/permit.ts";
import type { DialogFacts } from "../../registry/define.ts";
import { authorizeTargets } from "./authorize.ts";
import { chosenSnapshot } from "./dialog-facts.ts";
import type { GatewayContext } from "./gateway-context.ts";

/** More are only counted. */
const maxNamed = 20;

/** Who could approve what this permit is for; `refused`: why nobody could, known before anything is typed. */
export async function approversOf({ approvals, person }: Permit, gateway: GatewayContext) {
  const { votes, raised }: Approvals = approvals;
  const requesterId = person.id;
  if (votes.length === 0) return {};
  const { nameOf, ourTeamId, policy } = gateway;
  const entries = votes.flatMap(({ from }) => from);
  await gateway.learnNames(entries);
  const membersOf = await gateway.membersOf(entries);
  const personOrNothing = (id: string) => gateway.person(id, ourTeamId).catch(() => undefined);
  const requester = (await personOrNothing(requesterId)) ?? { id: requesterId };
  const unable = new Set<string>();
  const needs = await Promise.all(
    votes.map(async (need) => {
      const { everyone, users, groups } = whoAre(need.from);
      const ids = new Set([...users, ...groups.flatMap((group) => membersOf(group) ?? [])]);
      ids.delete(requesterId);
      const people = await Promise.all([...ids].slice(0, maxNamed).map(personOrNothing));
      const who = people.flatMap((one) => {
        // Slack can't say: not named, and not counted out
        if (!one) return [];
        if (isFullMember(one, ourTeamId) && !isSamePerson(one, requester))
          return [{ id: one.id, name: one.name }];
        unable.add(one.id);
        return [];
      });
      return { called: calledIn(need, nameOf), ...(everyone ? {} : { who }) };
    }),
  );
  const refused = approversRefusal({ votes, requesterId, membersOf, unable, nameOf });
  if (!refused) return isUsual(policy, votes) ? { who: needs[0]?.who } : { needs };
  if (raised === undefined) return { refused };
  const way = `One of these is added because ${raised}. Choose another snapshot: \`/vm snapshots\` lists those that Gatehouse took.`;
  return { refused: { ...refused, hint: `${way} ${refused.hint}` } };
}

/** Stricter, where the facts say that a restore would change the measurement or is old. */
export function raiseByFacts(permit: Permit, facts: DialogFacts, { now }: { now(): number }) {
  return raiseForRestore(permit, restoringOf(facts, now()));
}

/** The permit by what was read since it was given: the VMs that a project has now, and what a restore would bring back. */
export async function permitByFacts(
  given: Permit,
  facts: DialogFacts,
  gateway: GatewayContext,
): Promise<Permit> {
  const { asking, command, targets, input } = given;
  if (command.on !== "project") return raiseByFacts(given, facts, gateway);
  const vmNames = facts.vms.map((vm) => vm.name);
  const about = { targets, input, vmNames };
  return raiseByFacts(await authorizeTargets(asking, about, gateway), facts, gateway);
}

/** What a restore would bring back, as far as these facts say. */
export function restoringOf(facts: DialogFacts, now: number): Restoring {
  const { seen } = facts;
  return {
    snapshot: chosenSnapshot(facts),
    measurementNow: seen && "projectId" in seen ? seen.attestation?.measurement : undefined,
    now,
  };
}
