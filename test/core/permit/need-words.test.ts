import { describe, expect, it } from "vitest";
import { calledIn, needsInWords, voteRefusalText } from "../../../src/core/permit/approval-rule.ts";

const names: Record<string, string> = { S0LEADS: "@pay-leads", S0SEC: "@security", U0AMIR: "amir" };
const need = (from: readonly string[], required = 1) => ({
  required,
  called: calledIn({ from }, (id) => names[id]),
});

describe("needs in words", () => {
  it.each([
    [[need(["S0LEADS"]), need(["S0SEC"])], "one of @pay-leads and one of @security"],
    [[need(["S0LEADS", "U0AMIR"], 2)], "two of @pay-leads or amir"],
    [[need(["U0AMIR"])], "amir"],
    [[need(["*"])], "any full member"],
    [[need(["*", "S0LEADS"], 2)], "two full members"],
    [[need(["S0GONE"])], "one of a user group without a name"],
    [[need(["U0GONE", "U0AMIR"])], "one of a person without a name or amir"],
  ])("say of %j %s, and never name an ID", (needs, words) => {
    expect(needsInWords(needs)).toBe(words);
    expect(needsInWords(needs)).not.toMatch(/\b[SU]0/);
  });

  it("tell whoever isn't needed any more whose approval is", () => {
    expect(voteRefusalText("not-needed", needsInWords([need(["S0SEC"])]))).toBe(
      "The approvals you could give have already been given; this still needs one of @security.",
    );
  });
});
