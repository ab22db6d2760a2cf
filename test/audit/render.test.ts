import { describe, expect, it } from "vitest";
import {
  describeEntry,
  renderHead,
  renderAudit,
  renderVerdict,
  verdictLines,
} from "../../src/audit/render.ts";
import type { TrailVerdict } from "../../src/audit/verify.ts";
import { hideSecret } from "../../src/log/log.ts";

const at = Date.UTC(2026, 10, 20, 21, 5, 7);

const moved = {
  id: "1-0",
  at,
  record: {
    what: "request",
    request: "r-7kq2",
    command: "vm restart",
    target: { kind: "vm", id: "vm-1", name: "web-1" },
    requester: "U01ALICE",
    who: "U02BOB",
    move: "authorized",
    why: "approved",
  },
};

const hash = "ab".repeat(32);

const intact: TrailVerdict = {
  is: "intact",
  problems: [],
  recorded: [],
  sealed: 1204,
  head: { seq: 1204, hash },
  erased: 1,
  unsealed: { count: 2, oldestMs: 700 },
  anchors: 3,
  signed: { seq: 1200, keys: ["0123456789abcdef"] },
};

describe("the audit trail in words", () => {
  it("is a table of time, who, what, target and verdict", () => {
    const shown = renderAudit({ entries: [moved] }, "web-1");
    expect(shown.text).toBe(
      "Audit trail about web-1: the last 1\n2026-11-20 21:05:07 · U02BOB · vm restart (r-7kq2) · web-1 · authorized: approved",
    );
    expect(shown.blocks.map(({ type }) => type)).toEqual(["section", "data_table"]);
  });

  it("says so when there is nothing, or when there is more", () => {
    expect(renderAudit({ entries: [] }, "web-1").text).toBe(
      "The audit trail has no records about web-1.",
    );
    expect(renderAudit({ entries: [], isMore: true }).text).toBe(
      "Nothing in the last 50,000 audit records.",
    );
    const more = renderAudit({ entries: [moved], isMore: true });
    expect(more.blocks.at(-1)).toMatchObject({
      type: "context",
      elements: [{ text: "There is more. `/gatehouse audit &lt;target&gt;` narrows it down." }],
    });
  });

  it("has words for every kind of record, known or not", () => {
    const rows = [
      { what: "freeze", who: "U1", why: "odd things happen" },
      {
        what: "refusal",
        who: "U1",
        command: "vm stop",
        targets: ["vm-1", "vm-2"],
        rule: "protected",
      },
      {
        what: "request",
        command: "vm stop",
        request: "r-1",
        requester: "U1",
        move: "done",
        why: "settled",
      },
      { what: "alarm", request: "r-1", why: "differs from what was approved" },
      { what: "audit-erased", who: "U1", why: "left", erased: [] },
      { odd: { deep: true } },
    ].map((record) => describeEntry({ id: "1-0", at, record }).slice(1));
    expect(rows).toEqual([
      ["U1", "freeze", "", "odd things happen"],
      ["U1", "refusal (vm stop)", "vm-1, vm-2", "protected"],
      ["Gatehouse", "vm stop (r-1)", "", "done: settled"],
      ["Gatehouse", "alarm (r-1)", "", "differs from what was approved"],
      ["U1", "audit erased", "", "left"],
      ["Gatehouse", "", "", ""],
    ]);
  });

  it("shows no secret, whoever wrote it there", () => {
    hideSecret("hunter2hunter2");
    const record = { what: "freeze", who: "U1", why: "hunter2hunter2 and xoxb-12-34-abc" };
    const text = JSON.stringify(renderAudit({ entries: [{ id: "1-0", at, record }] }));
    expect(text).not.toMatch(/hunter2|xoxb-12/);
  });
});

describe("the verdict in words", () => {
  it("says what was verified and what waits", () => {
    expect(verdictLines(intact)).toEqual([
      "The audit trail is intact: 1,204 records verified.",
      "2 records not sealed yet, the oldest for 1 s.",
      `Head: 1204:${hash}`,
      "Compared with 3 heads kept elsewhere.",
      "Signed up to record 1200 by 0123456789abcdef.",
      "1 record erased on purpose; their seals still verify.",
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
      says: "the record is not the one that was sealed",
    } as const;
    const [first] = verdictLines({ ...intact, is: "broken", problem });
    expect(first).toBe(
      "The audit trail is broken at record 12 (5-0): the record is not the one that was sealed (changed).",
    );
  });

  it("says why it can't be told", () => {
    expect(verdictLines({ ...intact, is: "unsure" })[0]).toContain("waiting to be sealed");
    expect(verdictLines({ ...intact, is: "unsure", sealed: 0 })[0]).toBe(
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
