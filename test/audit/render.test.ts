import { describe, expect, it } from "vitest";
import { renderHead, renderVerdict, verdictLines } from "../../src/audit/render.ts";
import type { TrailVerdict } from "../../src/audit/verify.ts";

const hash = "ab".repeat(32);

const intact: TrailVerdict = {
  standing: "intact",
  problems: [],
  recorded: [],
  sealed: 1204,
  head: { seq: 1204, hash },
  erased: 1,
  redacted: 2,
  unsealed: { count: 2, oldestMs: 700 },
  anchors: 3,
  signed: { seq: 1200, keys: ["0123456789abcdef"] },
};

describe("the verdict in words", () => {
  it("says what was verified and what waits", () => {
    expect(verdictLines(intact)).toEqual([
      "The audit trail is intact: 1,204 records verified.",
      "2 records not sealed yet, the oldest for 1 s.",
      `Head: 1204:${hash}`,
      "Compared with 3 heads kept elsewhere.",
      "Signed up to record 1200 by 0123456789abcdef.",
      "1 record erased on purpose; their seals still verify.",
      "A person was removed from 2 records on purpose; the seals still verify, and later records vouch for what is left.",
    ]);
    expect(renderVerdict(intact).text).toBe(
      "✅ The audit trail is intact: 1,204 records verified.",
    );
  });

  it("names the first bad record", () => {
    const problem = {
      seq: 12,
      id: "5-0",
      kind: "changed",
      sentence: "the record is not the one that was sealed",
    } as const;
    const [first] = verdictLines({ ...intact, standing: "broken", problem });
    expect(first).toBe(
      "The audit trail is broken at record 12 (5-0): the record is not the one that was sealed (changed).",
    );
  });

  it("says why it can't be told", () => {
    expect(verdictLines({ ...intact, standing: "unsure" })[0]).toContain("waiting to be sealed");
    expect(verdictLines({ ...intact, standing: "unsure", sealed: 0 })[0]).toBe(
      "There is nothing to verify: no record is sealed.",
    );
  });
});

describe("the daily head", () => {
  it("can be copied into the command that compares it", () => {
    const { text, blocks } = renderHead({ seq: 12, hash });
    expect(text).toBe("Head of the audit trail after 12 records");
    expect(JSON.stringify(blocks)).toContain(`audit verify --anchor 12:${hash}`);
  });
});
