/**
 * How many approvals of these people count for each need, when as many as possible do: one person counts once, so this is a
 * largest matching (augmenting paths).
 */
export function metBy<Need extends { required: number }, T>(
  needs: readonly Need[],
  people: readonly T[],
  fits: (need: Need, one: T) => boolean,
): readonly number[] {
  const places = needs.flatMap((need, index) =>
    Array.from({ length: need.required }, () => ({ need, index })),
  );
  const taken = new Map<number, number>(); // person → place
  const seat = (place: number, tried: Set<number>): boolean => {
    const wanted = places[place];
    return people.some((one, who) => {
      if (!wanted || tried.has(who) || !fits(wanted.need, one)) return false;
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
 * Who could approve: how many of the approvals that these needs ask for these people could give, each of them one, and the needs that
 * lack some. `ableFor`: the IDs that may approve for a need; undefined where it may be anybody, or nobody can tell, and nothing is lacking.
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
  const able = [...new Set(counted.flatMap((one) => [...one.able]))];
  const met = metBy(counted, able, (one, id) => one.able.has(id));
  const lacking = counted.flatMap(({ need, required }, index) =>
    (met[index] ?? 0) < required ? [need] : [],
  );
  const required = counted.reduce((sum, one) => sum + one.required, 0);
  return { able, required, isEnough: lacking.length === 0, lacking };
}
