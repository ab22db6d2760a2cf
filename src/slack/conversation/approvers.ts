import { approversRefusal, isSamePerson } from "../../policy/vote.ts";
import { whoAre } from "../../policy/access.ts";
import { calledIn } from "../../policy/need-words.ts";
import type { VoteNeed } from "../../policy/vote-needs.ts";
import type { Refusal } from "../../registry/define.ts";
import type { GatewayContext } from "./gateway-context.ts";

type Gateway = Pick<GatewayContext, "membersOf" | "nameOf" | "learnNames" | "ourTeamId" | "person">;

/** Why nobody could approve it, known before anything is typed. */
export async function tooFewApprovers(
  { votes, raised }: { votes: readonly VoteNeed[]; raised?: string | undefined },
  requesterId: string,
  { membersOf, nameOf, learnNames }: Gateway,
): Promise<Refusal | undefined> {
  if (votes.length === 0) return undefined;
  const asked = votes.flatMap(({ from }) => from);
  const members = await membersOf(asked);
  await learnNames(asked);
  const refused = approversRefusal({ votes, requesterId, membersOf: members, nameOf });
  if (!refused || raised === undefined) return refused;
  const way = `One of these is added because ${raised}. Choose another snapshot: \`/vm snapshots\` lists those that Gatehouse took.`;
  return { ...refused, hint: `${way} ${refused.hint}` };
}

/** More are only counted. */
const maxNamed = 20;

/** Who could approve what this person requests, with names; undefined when every full member could. */
export async function approversFor(
  votes: readonly VoteNeed[],
  requesterId: string,
  { membersOf, ourTeamId, person }: Gateway,
): Promise<{ id: string; name: string }[] | undefined> {
  const { everyone, users, groups } = whoAre(votes.flatMap(({ from }) => from));
  if (everyone) return undefined;
  const members = await membersOf(groups);
  const ids = new Set([...users, ...groups.flatMap((group) => members(group) ?? [])]);
  ids.delete(requesterId);
  const people = await Promise.all(
    [...ids].slice(0, maxNamed).map((id) => person(id, ourTeamId).catch(() => undefined)),
  );
  const requester = await person(requesterId, ourTeamId).catch(() => ({ id: requesterId }));
  return people.flatMap((one) =>
    one?.kind === "member" && !isSamePerson(one, requester) ? [{ id: one.id, name: one.name }] : [],
  );
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
