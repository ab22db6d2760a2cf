import { describe, expect, it } from "vitest";
import { parsePolicy, policyVersion } from "../../../src/config/policy-file.ts";
import { sectionOf } from "../../../src/config/policy-section.ts";
import { digestsIn, digestsSection } from "../../../src/features/digests/digests-section.ts";
import { policyTerms } from "../../../src/features/index.ts";
import { policyOf } from "../../core/permit/sample.ts";
import { channelsNamed } from "../../../src/config/named-in-policy.ts";

const problemsOf = (text: string) => {
  const read = parsePolicy(text, "gatehouse.yml", policyTerms);
  return "problems" in read ? read.problems : [];
};

describe("digests in gatehouse.yml", () => {
  it("have a channel, a time, a time zone, and days", () => {
    const [read] = sectionOf(
      policyOf(
        "digests: [{ channel: C02STATUS, at: '09:00', timezone: Europe/Paris, days: mon-fri }]",
      ),
      digestsSection,
    );
    expect(read).toEqual({
      channel: "C02STATUS",
      at: "09:00",
      timezone: "Europe/Paris",
      days: ["mon", "tue", "wed", "thu", "fri"],
    });
    expect(sectionOf(policyOf("{}"), digestsSection)).toEqual([]);
  });

  it.each([
    ["daily", "mon tue wed thu fri sat sun"],
    ["mon-fri", "mon tue wed thu fri"],
    ["Mon, wed", "mon wed"],
    ["sat-mon,wed", "mon wed sat sun"],
  ])("understand the days %s", (text, days) => {
    const policy = policyOf(`digests: [{ channel: C1A, at: "09:00", days: "${text}" }]`);
    const [read] = sectionOf(policy, digestsSection);
    expect(read?.days.join(" ")).toBe(days);
    expect(read?.timezone).toBe("UTC");
  });

  it("are posted in the channel of the team that has them, and need one", () => {
    const policy = policyOf(
      'teams: { a: { projects: [x], channel: C0A, digests: [{ at: "09:00" }] } }\ndigests: [{ channel: C0B, at: "10:00" }]',
    );
    expect(digestsIn(policy).map(({ channel, at }) => `${channel} ${at}`)).toEqual([
      "C0B 10:00",
      "C0A 09:00",
    ]);
    expect(channelsNamed(policy).toSorted()).toEqual(["C0A", "C0B"]);
    expect(problemsOf('teams: { a: { projects: [x], digests: [{ at: "09:00" }] } }')).toEqual([
      "gatehouse.yml line 1: teams.a.digests have no place: add `channel` to the team",
    ]);
  });

  it("are refused with their mistakes", () => {
    expect(
      problemsOf(
        'digests:\n  - { channel: "#ops", at: "9:00", timezone: Mars/Base, days: fryday }\n',
      ),
    ).toEqual([
      expect.stringMatching(/^gatehouse\.yml line 2: digests\[1\]\.channel must be a channel ID/),
      expect.stringMatching(
        /^gatehouse\.yml line 2: digests\[1\]\.at must be a time of day like "09:00"/,
      ),
      expect.stringMatching(/^gatehouse\.yml line 2: digests\[1\]\.timezone must be a time zone/),
      expect.stringMatching(/^gatehouse\.yml line 2: digests\[1\]\.days must be days like/),
    ]);
    expect(problemsOf("digests: [null]").join()).toContain(
      "digests[1] is empty: give it a value, or remove it",
    );
  });

  it("don't change the version of a file: nothing that waits is canceled for them", () => {
    const team = "teams: { pay: { projects: [payments], operate: [S01ONCALL], channel: C01OPS";
    const versions = [
      `${team} } }`,
      `${team}, digests: [{ at: "09:00" }] } }`,
      `${team} } }\ndigests: [{ channel: C1A, at: "09:00" }]`,
    ].map((text) => policyVersion(policyOf(text)));
    // The same version as in the test of the policy file
    expect(new Set(versions)).toEqual(new Set(["37546b830f99"]));
  });
});
