/**
 * How many approvals each need gets when these people are assigned in the best way. One person
 * counts once, so this is a largest bipartite matching (augmenting paths).
 */
export function metBy<Need extends { required: number }, T>(
  needs: readonly Need[],
  people: readonly T[],
  fits: (need: Need, person: T) => boolean,
): readonly number[] {
  const places = needs.flatMap((need, index) =>
    Array.from({ length: need.required }, () => ({ need, index })),
  );
  const taken = new Map<number, number>(); // Maps a person to a place.
  const seat = (place: number, tried: Set<number>): boolean => {
    const wanted = places[place];
    return people.some((person, who) => {
      if (!wanted || tried.has(who) || !fits(wanted.need, person)) return false;
      tried.add(who);
      const before = taken.get(who);
      if (before !== undefined && !seat(before, tried)) return false;
      taken.set(who, place);
      return true;
    });
  };
  for (const place of places.keys()) seat(place, new Set());
  const met = needs.map(() => 0);
  for (const place of taken.values()) {
    const index = places[place]?.index ?? 0;
    met[index] = (met[index] ?? 0) + 1;
  }
  return met;
}

/**
 * Whether these needs could be met: who is able to approve, how many approvals are required, and
 * which needs lack people when each person gives one approval. `ableFor` returns the IDs that may
 * approve for a need. It returns undefined when anybody may or nobody can tell; such a need lacks
 * nothing.
 */
export function couldApprove<Need extends { required: number }>(
  needs: readonly Need[],
  ableFor: (need: Need) => Iterable<string> | undefined,
): {
  able: readonly string[];
  required: number;
  isEnough: boolean;
  lacking: readonly Need[];
} {
  const counted = needs.flatMap((need) => {
    const able = ableFor(need);
    return able === undefined ? [] : [{ need, required: need.required, able: new Set(able) }];
  });
  const able = [...new Set(counted.flatMap((need) => [...need.able]))];
  const met = metBy(counted, able, (need, id) => need.able.has(id));
  const lacking = counted.flatMap(({ need, required }, index) =>
    (met[index] ?? 0) < required ? [need] : [],
  );
  const required = counted.reduce((sum, need) => sum + need.required, 0);
  return { able, required, isEnough: lacking.length === 0, lacking };
}
