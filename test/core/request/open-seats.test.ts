import { describe, expect, it } from "vitest";
import type { Vote } from "../../../src/core/permit/votes.ts";
import { meets } from "../../../src/core/permit/approval-rule.ts";
import { namedNeeds, awaitsVoteOf } from "../../../src/core/request/open-seats.ts";
import type { StoredRequest } from "../../../src/core/request/stored-request.ts";
import { ourTeamId, person, policyOf } from "../permit/sample.ts";

describe("a request with overlapping seats", () => {
  const needs = [
    { from: ["U0XENA", "U0YVES"], required: 1 },
    { from: ["U0XENA"], required: 1 },
  ];
  const requester = { id: "U0OLIVIA" };
  const typed = { kind: "typed", interaction: "i-1" } as const;
  const votedBy = (id: string): Vote => ({
    voterId: id,
    name: id,
    vote: "approve",
    at: 1,
    digest: "d",
    meets: meets(needs, person(id)),
  });
  const request = (...votes: Vote[]) =>
    ({
      record: { requester, origin: typed, approval: { required: 2, votes: needs } },
      state: "draft",
      votes,
    }) as unknown as StoredRequest;
  const waits = (id: string, ...votes: Vote[]) =>
    awaitsVoteOf(person(id), request(...votes), { policy: policyOf("{}"), ourTeamId });

  it("waits for those whose vote would count, whichever seat the others have by then", () => {
    expect(waits("U0XENA")).toBe(true);
    expect(waits("U0YVES")).toBe(true);
    expect(waits("U0YVES", votedBy("U0XENA"))).toBe(true);
    expect(waits("U0XENA", votedBy("U0YVES"))).toBe(true);
    expect(waits("U0ZOE", votedBy("U0XENA"))).toBe(false);
    expect(waits("U0YVES", votedBy("U0YVES"))).toBe(false);
  });

  it("doesn't wait for the person who asked others to make it", () => {
    const plain = request();
    const origin = { kind: "proposal", proposal: "p-1", asker: "U0XENA" } as const;
    const asked = { ...plain, record: { ...plain.record, origin } } as StoredRequest;
    const rules = { policy: policyOf("{}"), ourTeamId };
    expect(awaitsVoteOf(person("U0XENA"), asked, rules)).toBe(false);
    expect(awaitsVoteOf(person("U0YVES"), asked, rules)).toBe(true);
  });

  it("names as missing what others can still give", () => {
    const named = needs.map(({ from }) => ({ called: from }));
    const { record, votes } = request(votedBy("U0XENA"));
    const approval = { ...record.approval, needs: named } as typeof record.approval;
    expect(namedNeeds({ record: { ...record, approval } as typeof record, votes })?.open).toEqual([
      { from: ["U0XENA", "U0YVES"], required: 1, called: ["U0XENA", "U0YVES"] },
    ]);
  });

  it("waits for nobody for whom no seat is left", () => {
    const one = [
      { from: ["U0XENA", "U0YVES"], required: 1 },
      { from: ["U0ZOE"], required: 1 },
    ];
    const over = {
      ...request({ ...votedBy("U0XENA"), meets: [0] }),
      record: { requester, origin: typed, approval: { required: 2, votes: one } },
    } as unknown as StoredRequest;
    expect(awaitsVoteOf(person("U0YVES"), over, { policy: policyOf("{}"), ourTeamId })).toBe(false);
    expect(awaitsVoteOf(person("U0ZOE"), over, { policy: policyOf("{}"), ourTeamId })).toBe(true);
  });
});
