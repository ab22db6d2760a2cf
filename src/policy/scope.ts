import type { Policy } from "../config/policy-file.ts";
import type { Scope } from "../inventory/inventory.ts";
import type { Person } from "../registry/person.ts";
import { placesSeen } from "./access.ts";
import { allRights, rightsOver, teamOfChannel } from "./teams.ts";

/** Undefined for those who see everything. */
export function scopeOfPerson(
  policy: Policy,
  person: Person,
  ourTeamId: string,
): Scope | undefined {
  return scopeOf(policy, placesSeen(policy, person, ourTeamId));
}

/** What may be told in a channel: what its team has, and elsewhere what no team has. */
export function scopeOfChannel(policy: Policy, channelId: string): Scope | undefined {
  const team = teamOfChannel(policy, channelId);
  return scopeOf(policy, [team === undefined ? "access" : `teams.${team}`]);
}

const numbers = new WeakMap<Policy["teams"], number>();
let policies = 0;

function scopeOf(policy: Policy, places: readonly string[]): Scope | undefined {
  if (places.length === allRights(policy).length) return undefined;
  const seen = new Set(places);
  const number = numbers.get(policy.teams) ?? (policies += 1);
  numbers.set(policy.teams, number);
  return {
    // Another policy's places have the same names
    key: [number, ...places].join(" "),
    sees: (project) => rightsOver(policy, project).every(({ place }) => seen.has(place)),
  };
}
