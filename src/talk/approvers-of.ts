import { isFullMember, whoAre } from "../core/permit/access.ts";
import {
  approversRefusal,
  calledIn,
  isSamePerson,
  isUsual,
  needsWords,
} from "../core/permit/approval-rule.ts";
import { mustApprove } from "../core/cards/asking.ts";
import type { Permit } from "../core/permit/permit.ts";
import { type Origin, askerOf } from "../core/request/origin.ts";
import { commandWithRole } from "../registry/command-roles.ts";
import type { GatewayContext } from "./gateway-context.ts";

/** Slack is asked about this many members for each need; the names of more aren't shown. */
const maxNamed = 20;

/**
 * Finds who could approve what this permit is for, if `origin` makes the request. `refused` says
 * why nobody could, so that it is known before a form is filled in.
 */
export async function approversOf(
  { approvals, person }: Permit,
  origin: Origin | undefined,
  gateway: GatewayContext,
) {
  const { votes, raised } = approvals;
  const requesterId = person.id;
  if (votes.length === 0) return {};
  const { nameOf, ourTeamId, policy } = gateway;
  const entries = votes.flatMap(({ from }) => from);
  await gateway.learnNames(entries);
  const membersOf = await gateway.membersOf(entries);
  const personOrNothing = (id: string) => gateway.person(id, ourTeamId).catch(() => undefined);
  const requester = (await personOrNothing(requesterId)) ?? { id: requesterId };
  const askerId = origin && askerOf({ origin });
  const asker = askerId === undefined ? undefined : await personOrNothing(askerId);
  const others = [requester, ...(asker ? [asker] : [])];
  const unable = new Set(askerId === undefined ? [] : [askerId]);
  const needs = await Promise.all(
    votes.map(async (need) => {
      const { everyone, users, groups } = whoAre(need.from);
      const ids = new Set([...users, ...groups.flatMap((group) => membersOf(group) ?? [])]);
      ids.delete(requesterId);
      const people = await Promise.all([...ids].slice(0, maxNamed).map(personOrNothing));
      const who = people.flatMap((candidate) => {
        // Slack couldn't look this person up: the name isn't shown, but the person may still be
        // able to approve.
        if (!candidate) return [];
        if (
          isFullMember(candidate, ourTeamId) &&
          !others.some((other) => isSamePerson(candidate, other))
        )
          return [{ id: candidate.id, name: candidate.name }];
        unable.add(candidate.id);
        return [];
      });
      return { called: calledIn(need, nameOf), ...(everyone ? {} : { who }) };
    }),
  );
  const refused = approversRefusal({ votes, requesterId, membersOf, unable, nameOf });
  if (!refused) return isUsual(policy, votes) ? { who: needs[0]?.who } : { needs };
  if (raised === undefined) return { refused };
  const lister = commandWithRole(gateway.commands, "lists-snapshots");
  const which = lister ? `: \`/${lister.name}\` lists those that Gatehouse took` : "";
  const way = `One of these is added because ${raised}. Choose another snapshot${which}.`;
  return { refused: { ...refused, hint: `${way} ${refused.hint}` } };
}

/**
 * Returns the approvals that a permit needs as sentences: `One other person must approve: amir or
 * ada can.` Undefined when it needs none.
 */
export function approvalWords(
  { approvals }: Permit,
  { who, needs }: Awaited<ReturnType<typeof approversOf>>,
  { nameOf }: { nameOf(id: string): string | undefined },
): string | undefined {
  const { required, votes, raised } = approvals;
  if (required === 0) return undefined;
  const names = who?.map((approver) => approver.name);
  const from = needs ? needsWords(votes, nameOf) : mustApprove(required, names);
  return raised ? `${from} One more than usual: ${raised}.` : from;
}
