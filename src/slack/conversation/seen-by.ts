import { isFullMember } from "../../policy/access.ts";
import { ownerOf } from "../../policy/judged.ts";
import { scopeOfPerson } from "../../policy/scope.ts";
import { mayMeet, needsOf } from "../../policy/vote-needs.ts";
import type { Person } from "../../registry/person.ts";
import type { Journal } from "../../requests/journal/journal.ts";
import type { StoredRequest } from "../../requests/journal/record.ts";
import type { Interaction } from "../receive/interaction.ts";
import type { GatewayContext } from "./gateway-context.ts";

/**
 * What the person behind an interaction may see of everything: the VMs and projects of their teams and of no team, and the
 * requests on them. Every handler gets this instead of the whole, so that a new command can't forget it; what is hidden is
 * answered like what doesn't exist. Without teams, and without rules that name who votes, it is the whole.
 */
export function seenBy(
  { userId, teamId }: Pick<Interaction, "userId" | "teamId">,
  gateway: GatewayContext,
): GatewayContext {
  const { policy, ourTeamId } = gateway;
  const { teams, approvals } = policy;
  if (Object.keys(teams).length === 0 && approvals.every(({ votes }) => !votes)) return gateway;
  let asked: Promise<Person> | undefined;
  const person = () => (asked ??= gateway.person(userId, teamId));
  const scope = async () => scopeOfPerson(policy, await person(), ourTeamId);
  const inventory = gateway.inventory.seenIn(scope);
  return {
    ...gateway,
    inventory,
    store: journalSeenBy(person, gateway),
    status: () => gateway.status(inventory),
  };
}

/** Requests read at once, and at most, to find those that somebody sees. */
const readAtOnce = 200;
const maxRead = 2_000;

/** The journal without the requests that a person doesn't see. */
function journalSeenBy(person: () => Promise<Person>, gateway: GatewayContext): Journal {
  const { store } = gateway;
  const seen = async (requests: readonly StoredRequest[]) => {
    const who = await person();
    const isSeen = await Promise.all(requests.map((request) => mayRead(request, who, gateway)));
    return requests.filter((_, index) => isSeen[index]);
  };
  const getMany: Journal["getMany"] = async (ids) => seen(await store.getMany(ids));
  const get: Journal["get"] = async (id) => {
    const request = await store.get(id);
    return request && (await seen([request]))[0];
  };
  const recentIds: Journal["recentIds"] = async (filter, most) => {
    const ids = await store.recentIds(filter, maxRead);
    const found: string[] = [];
    for (let from = 0; from < ids.length && found.length < most; from += readAtOnce)
      for (const { record } of await getMany(ids.slice(from, from + readAtOnce)))
        found.push(record.id);
    return found.slice(0, most);
  };
  return {
    ...store,
    get,
    getMany,
    recentIds,
    openIds: async () => (await getMany(await store.openIds())).map(({ record }) => record.id),
    openCount: async () => (await recentIds({ open: true }, maxRead)).length,
    history: async (id) => ((await get(id)) ? store.history(id) : []),
  };
}

/**
 * Whoever asked for it, whoever may vote on it, and whoever sees its project, under the name that it had and under that of
 * now. Where no name is known, nobody of a team can be told from anybody else: only those who see everything.
 */
async function mayRead(
  { record }: StoredRequest,
  person: Person,
  { policy, ourTeamId, inventory }: GatewayContext,
): Promise<boolean> {
  const scope = scopeOfPerson(policy, person, ourTeamId);
  if (!scope || record.requester.id === person.id) return true;
  const { approval } = record;
  const mayVote =
    approval !== undefined &&
    isFullMember(person, ourTeamId) &&
    needsOf(policy, approval).some((need) => mayMeet(need, person));
  if (mayVote) return true;
  const owner = ownerOf(record.target);
  const known =
    owner.id === "" ? { unknown: [] } : await inventory.findProject(owner.id, { onlyKnown: true });
  const now = "found" in known && known.found.id === owner.id ? known.found.name : undefined;
  const names = [owner.name, now].filter((name) => name !== undefined);
  return names.length > 0 && names.every((name) => scope.sees({ id: owner.id, name }));
}
