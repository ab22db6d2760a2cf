import { approversRefusal, isSamePerson } from "../../policy/vote.ts";
import { isFullMember, whoAre } from "../../policy/access.ts";
import { calledIn } from "../../policy/need-words.ts";
import type { VoteNeed } from "../../policy/vote-needs.ts";
import type { Refusal } from "../../registry/define.ts";
import type { GatewayContext } from "./gateway-context.ts";

type Gateway = Pick<GatewayContext, "membersOf" | "nameOf" | "learnNames" | "ourTeamId" | "person">;

/** Why nobody could approve it, known before anything is typed. */
export async function tooFewApprovers(
  { votes, raised }: { votes: readonly VoteNeed[]; raised?: string | undefined },
  requesterId: string,
  gateway: Gateway,
): Promise<Refusal | undefined> {
  if (votes.length === 0) return undefined;
  const asked = votes.flatMap(({ from }) => from);
  const { nameOf } = gateway;
  const { people, members } = await peopleIn(asked, requesterId, gateway);
  await gateway.learnNames(asked);
  const unable = new Set(people.filter(({ can }) => can === false).map(({ id }) => id));
  const refused = approversRefusal({ votes, requesterId, membersOf: members, unable, nameOf });
  if (!refused || raised === undefined) return refused;
  const way = `One of these is added because ${raised}. Choose another snapshot: \`/vm snapshots\` lists those that Gatehouse took.`;
  return { ...refused, hint: `${way} ${refused.hint}` };
}

/** More are only counted. */
const maxNamed = 20;

/** Who is named there but the requester, with the members of groups. `can`: whether they could vote; undefined where Slack can't say. */
async function peopleIn(
  entries: readonly string[],
  requesterId: string,
  { membersOf, ourTeamId, person }: Gateway,
) {
  const { users, groups } = whoAre(entries);
  const members = await membersOf(groups);
  const ids = new Set([...users, ...groups.flatMap((group) => members(group) ?? [])]);
  ids.delete(requesterId);
  const read = (id: string) => person(id, ourTeamId).catch(() => undefined);
  const requester = (await read(requesterId)) ?? { id: requesterId };
  const people = await Promise.all(
    [...ids].slice(0, maxNamed).map(async (id) => {
      const one = await read(id);
      const can = one && isFullMember(one, ourTeamId) && !isSamePerson(one, requester);
      return { id, name: one?.name ?? id, can };
    }),
  );
  return { people, members };
}

/** Who could approve what this person requests, with names; undefined when every full member could. */
export async function approversFor(
  votes: readonly VoteNeed[],
  requesterId: string,
  gateway: Gateway,
): Promise<{ id: string; name: string }[] | undefined> {
  const entries = votes.flatMap(({ from }) => from);
  if (whoAre(entries).everyone) return undefined;
  const { people } = await peopleIn(entries, requesterId, gateway);
  return people.flatMap(({ id, name, can }) => (can === true ? [{ id, name }] : []));
}

/** What those whom each need names are called, and who could. */
export async function namedIn(
  votes: readonly VoteNeed[],
  requesterId: string,
  gateway: Gateway,
): Promise<{ called: readonly string[]; who?: { id: string; name: string }[] }[]> {
  await gateway.learnNames(votes.flatMap(({ from }) => from));
  return Promise.all(
    votes.map(async (need) => {
      const who = await approversFor([need], requesterId, gateway);
      return { called: calledIn(need, gateway.nameOf), ...(who ? { who } : {}) };
    }),
  );
}
