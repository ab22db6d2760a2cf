import type { Policy } from "../config/policy-file.ts";
import type { Person } from "../registry/invocation.ts";
import { metBy } from "../config/seats.ts";
import { named } from "./access.ts";
import { type Owned, rightsOver } from "./teams.ts";

/** So many of these people must approve. */
export interface VoteNeed {
  /** User IDs, user group IDs, or `*`. */
  from: readonly string[];
  required: number;
}

/** Where no rule names who: those who may approve what is done to this project. */
export function usualNeeds(
  policy: Policy,
  required: number,
  project: Owned | undefined,
): readonly VoteNeed[] {
  if (required === 0) return [];
  const over = project ? rightsOver(policy, project) : [{ rights: policy.access }];
  return over.map(({ rights }) => ({ from: rights.approve, required }));
}

/** What a waiting request needs, as policy said at the request. Earlier versions left out what `access.approve` said. */
export function needsOf(
  { access }: Pick<Policy, "access">,
  { required, votes }: { required: number; votes?: readonly VoteNeed[] },
): readonly VoteNeed[] {
  return votes ?? [{ from: access.approve, required }];
}

/** Whether `access.approve` says who: then no word is needed on whom to ask. */
export function isUsual({ access }: Pick<Policy, "access">, votes: readonly VoteNeed[]): boolean {
  return covers([{ from: access.approve, required: totalOf(votes) }], votes);
}

/** One approval more, of anybody who is asked anyway. */
export function oneMore(votes: readonly VoteNeed[]): readonly VoteNeed[] {
  const [first, ...others] = votes;
  if (first && others.length === 0) return [{ ...first, required: first.required + 1 }];
  return [...votes, { from: [...new Set(votes.flatMap(({ from }) => from))], required: 1 }];
}

/**
 * What meets each of these rules at once. Within one rule each entry is a seat of its own, and a person fills one; where several
 * rules ask for the same people, the most that one of them asks for is enough.
 */
export function allNeeds(rules: readonly (readonly VoteNeed[])[]): readonly VoteNeed[] {
  const most = new Map<string, VoteNeed>();
  for (const rule of rules) {
    const seats = new Map<string, VoteNeed>();
    for (const need of rule) {
      const key = [...new Set(need.from)].toSorted().join(" ");
      const required = (seats.get(key)?.required ?? 0) + need.required;
      seats.set(key, { from: need.from, required });
    }
    for (const [key, need] of seats)
      if ((most.get(key)?.required ?? 0) < need.required) most.set(key, need);
  }
  return [...most.values()];
}

export function totalOf(needs: readonly VoteNeed[]): number {
  return needs.reduce((sum, { required }) => sum + required, 0);
}

/** Whether each of these needs is among those. */
export function covers(those: readonly VoteNeed[], needs: readonly VoteNeed[]): boolean {
  return totalOf(allNeeds([those, needs])) === totalOf(those);
}

/** The numbers of the needs that an approval of this full member counts for. */
export function meets(
  needs: readonly VoteNeed[],
  person: Pick<Person, "id" | "groups">,
): readonly number[] {
  return needs.flatMap((need, index) => (mayMeet(need, person) ? [index] : []));
}

/** Whether an approval of this full member counts for it. */
export function mayMeet(need: VoteNeed, person: Pick<Person, "id" | "groups">): boolean {
  return named(need.from, person);
}

/** The needs that are still open, each with what it lacks. */
export function stillNeeded(
  needs: readonly VoteNeed[],
  approvers: readonly Pick<Person, "id" | "groups">[],
): readonly VoteNeed[] {
  return lacking(needs, metBy(needs, approvers, mayMeet));
}

/** The needs of which fewer were `met` than are required, each with what it lacks. */
export function lacking<Need extends VoteNeed>(
  needs: readonly Need[],
  met: readonly number[],
): readonly Need[] {
  return needs.flatMap((need, index) => {
    const required = need.required - (met[index] ?? 0);
    return required > 0 ? [{ ...need, required }] : [];
  });
}
