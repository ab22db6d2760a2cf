import { isFullMember, whoAre } from "../core/permit/access.ts";
import { approversRefusal, calledIn, isSamePerson, isUsual } from "../core/permit/approval-rule.ts";
import type { Permit } from "../core/permit/permit.ts";
import { snapshotLister } from "../registry/define.ts";
import type { GatewayContext } from "./gateway-context.ts";

/** More are only counted. */
const maxNamed = 20;

/** Who could approve what this permit is for; `refused`: why nobody could, known before anything is typed. */
export async function approversOf({ approvals, person }: Permit, gateway: GatewayContext) {
  const { votes, raised } = approvals;
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
  const lister = snapshotLister(gateway.commands);
  const which = lister ? `: \`/${lister.name}\` lists those that Gatehouse took` : "";
  const way = `One of these is added because ${raised}. Choose another snapshot${which}.`;
  return { refused: { ...refused, hint: `${way} ${refused.hint}` } };
}
