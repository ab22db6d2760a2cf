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
