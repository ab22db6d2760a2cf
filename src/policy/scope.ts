import type { Policy } from "../config/policy-file.ts";
import type { Scope } from "../inventory/inventory.ts";
import type { Person } from "../registry/invocation.ts";
import { placesSeen } from "./access.ts";
import { allRights, type Owned, rightsOver } from "./teams.ts";

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
  return scopeOf(policy, placesOf(policy, channelId));
}

/** What may be told in a channel, as far as this person sees it; in their direct messages, all that they see. */
export function scopeShownTo(
  person: Person,
  channelId: string,
  policy: Policy,
  ourTeamId: string,
): Scope | undefined {
  if (Object.keys(policy.teams).length === 0) return undefined;
  const seen = placesSeen(policy, person, ourTeamId);
  if (channelId.startsWith("D")) return scopeOf(policy, seen);
  return scopeOf(
    policy,
    placesOf(policy, channelId).filter((place) => seen.includes(place)),
  );
}

/** Whether a person sees all that may be told in a channel: who doesn't has no say in what is. */
export function seesAllOf(
  channelId: string,
  person: Person,
  policy: Policy,
  ourTeamId: string,
): boolean {
  const seen = placesSeen(policy, person, ourTeamId);
  return placesOf(policy, channelId).every((place) => seen.includes(place));
}

/**
 * Whether a project may be shown under every name that is known of it: the one it had, and that of now. Where no name is
 * known, no team can be told from another: only where everything is seen.
 */
export function seesUnder(
  scope: Scope | undefined,
  id: string,
  names: readonly (string | undefined)[],
): boolean {
  if (!scope) return true;
  const known = names.filter((name) => name !== undefined);
  return known.length > 0 && known.every((name) => scope.sees({ id, name }));
}

/** Whose a project is, as gatehouse.yml calls it: `access` for what no team has, `teams.payments`, or by mistake two of them. */
export function placeOf(policy: Policy, project: Owned): string {
  return rightsOver(policy, project)
    .map(({ place }) => place)
    .join(" ");
}

/** Undefined for what no team has, for a team without a channel, and where two teams have it: neither's may speak of it. */
export function channelOfTeam({ teams }: Policy, place: string): string | undefined {
  const [, team = ""] = /^teams\.(\S+)$/.exec(place) ?? [];
  return teams[team]?.channel;
}

/**
 * Where alarms about projects of a place (`placeOf`) go: to the team's channel, or to `alerts` for what no team has. What a team
 * without a channel has is told in the audit channel, which hears of every team.
 */
export function alertChannel(policy: Policy, place: string): string | undefined {
  if (place === "access") return policy.alerts?.channel;
  return channelOfTeam(policy, place) ?? policy.audit?.channel;
}

/** Two teams may share a channel. */
export function placesOf({ teams }: Policy, channelId: string): readonly string[] {
  const ours = Object.entries(teams).filter(([, { channel }]) => channel === channelId);
  return ours.length === 0 ? ["access"] : ours.map(([name]) => `teams.${name}`);
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
