import { approversRefusal, isSamePerson } from "../../policy/vote.ts";
import { whoMay } from "../../policy/access.ts";
import type { Refusal } from "../../registry/define.ts";
import type { GatewayContext } from "./gateway-context.ts";

type Gateway = Pick<
  GatewayContext,
  "policy" | "membersOf" | "nameOf" | "learnNames" | "ourTeamId" | "person"
>;

/** Why nobody could approve it, known before anything is typed. */
export async function tooFewApprovers(
  { required }: { required: number },
  requesterId: string,
  { policy, membersOf, nameOf, learnNames }: Gateway,
): Promise<Refusal | undefined> {
  if (required === 0) return undefined;
  const members = await membersOf(policy.access.approve);
  await learnNames(policy.access.approve);
  return approversRefusal({ policy, requesterId, required, membersOf: members, nameOf });
}

/** More are only counted. */
const maxNamed = 20;

/** Who could approve what this person requests, with names; undefined when every full member could. */
export async function approversFor(
  requesterId: string,
  { policy, membersOf, ourTeamId, person }: Gateway,
): Promise<{ id: string; name: string }[] | undefined> {
  const { everyone, users, groups } = whoMay(policy, "approve");
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
