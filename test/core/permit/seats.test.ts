import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { metBy } from "../../../src/config/seats.ts";
import {
  mayMeet,
  stillNeeded,
  totalOf,
  type VoteNeed,
  approversRefusal,
  voteRefusal,
} from "../../../src/core/permit/approval-rule.ts";
import { ourTeamId, person } from "./sample.ts";

const ids = ["U0A", "U0B", "U0C", "U0D", "U0E"];
const groupIds = ["S0ONE", "S0TWO"];

const asked = fc.record({
  votes: fc.array(
    fc.record({
      from: fc.uniqueArray(fc.constantFrom(...ids, ...groupIds), { minLength: 1, maxLength: 3 }),
      required: fc.integer({ min: 1, max: 2 }),
    }),
    { minLength: 1, maxLength: 3 },
  ),
  members: fc.tuple(
    fc.uniqueArray(fc.constantFrom(...ids), { maxLength: 3 }),
    fc.uniqueArray(fc.constantFrom(...ids), { maxLength: 3 }),
  ),
  requesterId: fc.constantFrom(...ids, "U0OTHER"),
  unable: fc.uniqueArray(fc.constantFrom(...ids), { maxLength: 2 }),
  order: fc.shuffledSubarray(ids, { minLength: ids.length }),
});

/** Whether different people can fill all seats. It tries each person on each seat. */
function canFill(
  seats: readonly VoteNeed[],
  people: readonly string[],
  fits: (need: VoteNeed, id: string) => boolean,
): boolean {
  const [first, ...others] = seats.flatMap((need) =>
    Array.from({ length: need.required }, () => ({ ...need, required: 1 })),
  );
  if (!first) return true;
  return people.some(
    (id) =>
      fits(first, id) &&
      canFill(
        others,
        people.filter((other) => other !== id),
        fits,
      ),
  );
}

const runs = { numRuns: 600, seed: 26 };

describe("seats of a rule, whatever lists overlap", () => {
  it("refuse a request exactly when no different people could fill all of them", () => {
    let refused = 0;
    fc.assert(
      fc.property(asked, ({ votes, members, requesterId, unable }) => {
        const membersOf = (group: string) => members[groupIds.indexOf(group)];
        const fits = ({ from }: VoteNeed, id: string) =>
          from.includes(id) || from.some((entry) => membersOf(entry)?.includes(id));
        const able = ids.filter((id) => id !== requesterId && !unable.includes(id));
        const no = approversRefusal({ votes, requesterId, membersOf, unable: new Set(unable) });
        refused += no ? 1 : 0;
        expect(no === undefined).toBe(canFill(votes, able, fits));
      }),
      runs,
    );
    expect(refused).toBeGreaterThan(60);
    expect(refused).toBeLessThan(540);
  });

  it("are all taken exactly when the votes that count could fill them, in whatever order they come", () => {
    let filled = 0;
    fc.assert(
      fc.property(asked, ({ votes, members, requesterId, order }) => {
        const groupsOf = (id: string) =>
          groupIds.filter((_, index) => members[index]?.includes(id) === true);
        const people = order.map((id) => person(id, { groups: groupsOf(id) }));
        const others = people.filter(({ id }) => id !== requesterId);
        const fits = (need: VoteNeed, id: string) => mayMeet(need, { id, groups: groupsOf(id) });
        const could = canFill(
          votes,
          others.map(({ id }) => id),
          fits,
        );
        const met = metBy(votes, others, mayMeet).reduce((sum, one) => sum + one, 0);
        expect(met === totalOf(votes)).toBe(could);
        expect(stillNeeded(votes, others).length === 0).toBe(could);
        // The ballot and the gate count votes one by one, each beside those that counted before.
        const requester = { id: requesterId };
        const approvers: typeof people = [];
        for (const voter of people)
          if (!voteRefusal({ votes, voter, ourTeamId, requester, approvers })) {
            if (totalOf(stillNeeded(votes, approvers)) > 0) approvers.push(voter);
          }
        expect(approvers.length === totalOf(votes)).toBe(could);
        filled += could ? 1 : 0;
      }),
      runs,
    );
    expect(filled).toBeGreaterThan(60);
    expect(filled).toBeLessThan(540);
  });
});
