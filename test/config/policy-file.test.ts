import { readFileSync } from "node:fs";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  emptyPolicy,
  parsePolicy,
  policyVersion,
  servicesVersion,
  type Policy,
} from "../../src/config/policy-file.ts";
import { parseDuration } from "../../src/config/durations.ts";
import { strictPolicy } from "../../src/verifier/appraisal-policy.ts";
import { policyTerms } from "../../src/features/index.ts";

function policy(text: string): Policy {
  const result = parsePolicy(text, "gatehouse.yml", policyTerms);
  if ("problems" in result) throw new Error(result.problems.join("\n"));
  return result.policy;
}

function problems(text: string): readonly string[] {
  const result = parsePolicy(text, "gatehouse.yml", policyTerms);
  return "problems" in result ? result.problems : [];
}

function version(text: string): string {
  return policyVersion(policy(text));
}

function approvals(more: string): string {
  return `access: { approve: ["S02LEADS"] }\napprovals: [{ operations: ["vm.*"], required: 1${more} }]`;
}

describe("gatehouse.yml", () => {
  it("holds everything that the example shows", () => {
    const example = readFileSync(new URL("../../gatehouse.example.yml", import.meta.url), "utf8");
    const read = policy(example);
    expect(read.access).toEqual({
      view: ["*"],
      operate: ["S01ONCALL"],
      approve: ["S02LEADS"],
      administer: ["U09ADMIN"],
      breakGlass: [],
    });
    expect(read.approvals[0]).toEqual({
      operations: ["vm.restore", "project.delete"],
      targets: ["prod-*"],
      required: 2,
      expiresMs: 900_000,
    });
    expect(read).toMatchObject({
      protect: ["vault-*"],
      audit: { channel: "C03AUDIT" },
      alerts: { channel: "C02STATUS" },
    });
    expect(read.timing).toEqual(emptyPolicy().timing); // the example shows the defaults
  });

  it("lets everyone view and nobody change anything when it says nothing", () => {
    for (const text of ["{}", "# nothing\n{}", "access: {}"]) {
      const empty = emptyPolicy(undefined, policyTerms.sections);
      expect({ ...policy(text), operations: [] }).toEqual(empty);
    }
    expect(emptyPolicy()).toMatchObject({
      access: { view: ["*"], operate: [], approve: [], administer: [], breakGlass: [] },
      approvals: [],
      protect: [],
      limits: {
        requestsPerMinute: 30,
        draftsPerPerson: 10,
        destructivePerHour: 5,
        breakGlassPerHour: 5,
      },
    });
    expect(emptyPolicy().channels).toBeUndefined();
  });

  it("has timing in milliseconds, each value with its default", () => {
    const { timing } = policy("timing: { httpTimeout: 1500ms, quiesce: 5s, reminders: [1s, 2m] }");
    expect(timing).toMatchObject({
      httpTimeoutMs: 1_500,
      quiesceMs: 5_000,
      settleDeadlineMs: 900_000,
      staleAfterMs: 600_000,
    });
    expect(timing.remindersMs).toEqual([1_000, 120_000]);
    expect(emptyPolicy().timing).toEqual({
      httpTimeoutMs: 15_000,
      quiesceMs: 60_000,
      settleDeadlineMs: 900_000,
      staleAfterMs: 600_000,
      approvalExpiresMs: 900_000,
      restartMarkMs: 120_000,
      pollFirstMs: 1_000,
      pollMostMs: 10_000,
      stableGapMs: 2_000,
      transitionGapMs: 500,
      claimWindowMs: 2_000,
      heartbeatMs: 3_000,
      sweepMs: 10_000,
      editMs: 4_000,
      messageRetryMs: 3_000,
      outageMs: 30_000,
      peopleCacheMs: 60_000,
      inventoryRefreshMs: 60_000,
      inventoryAgainMs: 1_000,
      remedyMs: 300_000,
      driftWatchMs: 900_000,
      remindersMs: [900_000, 3_600_000, 14_400_000],
    });
  });

  it("lets an approval rule expire as timing says, unless it says so itself", () => {
    expect(
      policy(`${approvals("")}\ntiming: { approvalExpires: 1h }`).approvals[0]?.expiresMs,
    ).toBe(3_600_000);
    expect(policy(approvals(", expires: 5m")).approvals[0]?.expiresMs).toBe(300_000);
  });

  it("reads measurements in any case, with or without 0x", () => {
    const read = policy(
      `attestation: { maxSnapshotAge: 7d, pins: [{ targets: ["a"], measurements: ["0x${"AB".repeat(48)}", "${"cd".repeat(48)}"] }] }`,
    );
    expect(read.attestation).toEqual({
      appraisal: [],
      maxSnapshotAgeMs: 604_800_000,
      pins: [{ targets: ["a"], measurements: ["ab".repeat(48), "cd".repeat(48)] }],
    });
  });
});

describe("attestation in gatehouse.yml", () => {
  const four = ["0xAA", "bb", "cc", "dd"].map((byte) => byte + byte.slice(-2).repeat(47));

  it("takes a measurement as one value, or as the four of a TDX VM", () => {
    const { attestation } = policy(
      `attestation: { pins: [{ targets: ["a"], measurements: ["${four.join(", ")}"] }] }`,
    );
    expect(attestation.pins[0]?.measurements).toEqual([
      ["aa", "bb", "cc", "dd"].map((byte) => byte.repeat(48)).join(","),
    ]);
    expect(
      problems(
        `attestation: { pins: [{ targets: ["a"], measurements: ["${four.slice(0, 3).join(",")}"] }] }`,
      ),
    ).toEqual([
      "gatehouse.yml line 1: attestation.pins[1].measurements[1] must be one value, or four with commas: MRTD,RTMR0,RTMR1,RTMR2",
    ]);
  });

  it("says what is accepted of which VMs; nothing is that isn't named", () => {
    const { attestation } = policy(`attestation:
  appraisal:
    - targets: ["test-*"]
      allow: [debug, migratable]
      accept: [{ status: OutOfDate, advisories: [INTEL-SA-00837], until: 2026-12-31 }]
      minimumTcb: [{ product: Genoa, models: [17], snp: 23, microcode: 84 }]
      vmpl: 1
      requireBinding: true
      maxAge: 7d
    - {}
`);
    expect(attestation.appraisal).toEqual([
      {
        targets: ["test-*"],
        policy: {
          allows: ["debug", "migratable"],
          statuses: [
            {
              status: "OutOfDate",
              advisories: ["INTEL-SA-00837"],
              until: Date.parse("2026-12-31T23:59:59Z"),
            },
          ],
          minimumTcb: [{ product: "Genoa", models: [17], tcb: { snp: 23, microcode: 84 } }],
          vmpl: 1,
          needsBinding: true,
          maxEndorsementAgeMs: 604_800_000,
        },
      },
      { targets: undefined, policy: strictPolicy },
    ]);
  });

  it("is told what no rule can mean", () => {
    expect(
      problems(`attestation:
  appraisal:
    - allow: [everything]
      accept: [{ status: Fine, until: soon }]
      vmpl: 4
`).map((problem) => problem.replace("gatehouse.yml ", "")),
    ).toEqual([
      "line 3: attestation.appraisal[1].allow[1] must be one of debug, migration-agent, migratable, service-td, chip-masked, known-broken-product",
      expect.stringMatching(
        /^line 4: attestation.appraisal\[1\].accept\[1\].status must be one of UpToDate, /,
      ),
      'line 4: attestation.appraisal[1].accept[1].until must be a day of the calendar like "2026-12-31"',
      "line 5: attestation.appraisal[1].vmpl must be a whole number from 0 to 3",
    ]);
  });

  it.each([
    [
      "a pin of 47 bytes",
      `pins: [{ targets: [a], measurements: ["${"ab".repeat(47)}"] }]`,
      /pins\[1\]\.measurements\[1\] must be 48 bytes/,
    ],
    [
      "a pin of 49 bytes",
      `pins: [{ targets: [a], measurements: ["${"ab".repeat(49)}"] }]`,
      /must be 48 bytes/,
    ],
    [
      "a day that isn't there",
      "appraisal: [{ accept: [{ status: OutOfDate, until: 2026-02-31 }] }]",
      /until must be a day of the calendar/,
    ],
    [
      "a minimum without a part",
      "appraisal: [{ minimumTcb: [{ product: Genoa }] }]",
      /minimumTcb\[1\] must name at least one part/,
    ],
    [
      "a part that the processor lacks",
      "appraisal: [{ minimumTcb: [{ product: Genoa, fmc: 1 }] }]",
      /fmc is a part of Turin's/,
    ],
    [
      "a weaker rule before a stricter one",
      "appraisal: [{ targets: ['prod-*', x], allow: [debug] }, { targets: ['prod-db-*'] }]",
      /appraisal\[2\] can never apply: rule 1/,
    ],
    [
      "a rule for all before another",
      "appraisal: [{ allow: [debug] }, { targets: [a] }]",
      /appraisal\[2\] can never apply/,
    ],
    [
      "a second rule for all",
      "appraisal: [{}, { allow: [debug] }]",
      /appraisal\[2\] can never apply/,
    ],
    [
      "a key that makes a line of its own",
      '"x\\nno problems": 1',
      /x\\u000ano problems isn't known/,
    ],
  ])("has a problem with its line: %s", (_what, text, says) => {
    const read = problems(`attestation: {\n  ${text}\n  }`);
    expect(read).toEqual([expect.stringMatching(says)]);
    expect(read[0]).toMatch(/^gatehouse\.yml line 2: [^\n]*$/);
  });

  it.each([
    "[{ targets: ['prod-db-*'] }, { targets: ['prod-*'], allow: [debug] }, {}]",
    "[{ targets: ['prod-?'] }, { targets: ['prod-*'] }]",
    "[{ targets: ['prod-*'] }, { targets: ['prod-1', 'test-1'] }]",
    "[{ minimumTcb: [{ product: Turin, fmc: 1 }], accept: [{ status: OutOfDate, until: 2028-02-29 }] }]",
  ])("takes what can hold: %s", (text) => {
    expect(policy(`attestation: { appraisal: ${text} }`).attestation.appraisal).not.toEqual([]);
  });

  it("is part of the policy's version, but for the folder where endorsements are", () => {
    const rules = "attestation: { appraisal: [{ allow: [debug] }] }";
    expect(version(rules)).not.toBe(version("{}"));
    expect(version("attestation: { endorsements: here }")).toBe(version("{}"));
  });
});

describe("a key of gatehouse.yml that a comment has emptied", () => {
  it.each([
    [
      "access:\n  view: # [S01ABC]\n",
      "line 2: access.view is empty: give it a value, or remove it",
    ],
    ["teams:\n#  pay: { projects: [pay] }\n", "line 1: teams is empty"],
    ["access: {}\nprotect:\n  # - vault-*\n", "line 2: protect is empty"],
    ["timing:\n  outage: 10s\n  driftWatch:\n", "line 3: timing.driftWatch is empty"],
    [
      "approvals:\n  - operations: [vm.restore]\n    targets:\n    required: 1",
      "line 3: approvals[1].targets is empty",
    ],
    ["access:\n  view:\n    - # S01ABC\n", "access.view[1] is empty"],
    ["", "line 1: the file is empty: for a policy by which everyone can view"],
    ["# access: { view: [S01ABC] }\n", "the file is empty"],
  ])("is a problem with its line, and no default counts: %j", (text, problem) => {
    const read = parsePolicy(text, "gatehouse.yml", policyTerms);
    expect("problems" in read && read.problems).toEqual([expect.stringContaining(problem)]);
  });
});

describe("a mistake in gatehouse.yml", () => {
  it("is told with its line, all of them at once, in the order of the file", () => {
    const text = [
      "access:",
      "  oprate: [S01ABC]",
      "  approve: [alice]",
      "approvals:",
      "  - operations: [restore it]",
      "timing: { quiesce: 15 }",
      "protect: vault",
      "colour: blue",
    ].join("\n");
    expect(problems(text)).toEqual([
      "gatehouse.yml line 2: access.oprate isn't known; did you mean operate?",
      expect.stringMatching(
        /^gatehouse\.yml line 3: access\.approve\[1\] must be a user ID \(U…\).* not a name/,
      ),
      "gatehouse.yml line 5: approvals[1] must contain either `required` or `votes`",
      expect.stringMatching(
        /^gatehouse\.yml line 5: approvals\[1\]\.operations\[1\] must be a command with a dot/,
      ),
      expect.stringMatching(
        /^gatehouse\.yml line 6: timing\.quiesce must be a length of time like/,
      ),
      "gatehouse.yml line 7: protect must be a list, like [a, b]",
      expect.stringMatching(
        /^gatehouse\.yml line 8: colour isn't known; known are version, access, approvals/,
      ),
    ]);
  });

  it.each([
    ["a: [1\nb: 2", "line 2"],
    ["access:\n  view: []\n  view: []", "line 3: Map keys must be unique"],
    ["[1, 2]", "the file must contain `name: value` lines"],
    ["__proto__: { x: 1 }", "__proto__ isn't known"],
    [
      "access: { view: [*nobody] }",
      "line 1: *nobody is an alias: put a glob in quotes, and write out what has a name",
    ],
    ["--- {}\n--- {}", "line 2"],
    ["channels: []", "must name at least one channel"],
    ["approvals: [{ operations: [], required: 1 }]", "must name at least one command"],
    ['approvals: [{ operations: ["*"], required: -1 }]', "must be a whole number from 0 to 20"],
    ["attestation: { pins: [{ targets: [a], measurements: [1234] }] }", 'put it in quotes ("…")'],
    ["approvals: [null]", "approvals[1] is empty: give it a value, or remove it"],
    ["timing: { outage: 25d }", "24 days at most"],
    ["timing: { outage: 0s }", "24 days at most"],
    ["limits: { requestsPerMinute: many }", "must be a whole number from 1"],
    ["x".repeat(1_000_001), "is larger than"],
  ])("is refused: %s", (text, sentence) => {
    expect(problems(text).join("\n")).toContain(sentence);
  });

  it("can't be a bomb of aliases, because it has none", () => {
    const levels = Array.from(
      { length: 9 },
      (_, level) => `k${level + 1}: &k${level + 1} [${`*k${level},`.repeat(9)}]`,
    );
    expect(problems(["k0: &k0 [x,x,x,x,x,x,x,x,x]", ...levels].join("\n")).join()).toContain(
      "line 2: *k0 is an alias",
    );
  });

  it("never throws, whatever the text", () => {
    const piece = fc.constantFrom(
      "access",
      "timing",
      ":",
      "\n",
      "  ",
      "- ",
      "[",
      "]",
      "{",
      "}",
      "&a",
      "*a",
      "!!x",
      '"',
      "|",
      "1",
      "?",
      ",",
    );
    const text = fc.oneof(
      fc.string(),
      fc.array(piece, { maxLength: 30 }).map((parts) => parts.join("")),
    );
    fc.assert(
      fc.property(text, (value) => typeof parsePolicy(value, "p", policyTerms) === "object"),
      { numRuns: 500 },
    );
  });
});

describe("the version of the policy", () => {
  it("stays when the folder of endorsements is another one", () => {
    const pins = `pins: [{ targets: ["a"], measurements: ["${"ab".repeat(48)}"] }]`;
    expect(version(`attestation: { ${pins}, endorsements: /srv/endorsements }`)).toBe(
      version(`attestation: { ${pins} }`),
    );
  });

  it("changes with a rule, and not with the order of keys, comments or timing", () => {
    const base = version("protect: [a]\naccess: { operate: [S01ABC], approve: [U01ABC] }");
    expect(base).toMatch(/^[0-9a-f]{12}$/);
    expect(
      version(
        "access: { approve: [U01ABC], operate: [S01ABC] } # same\nprotect: [a]\ntiming: { outage: 3s }",
      ),
    ).toBe(base);
    expect(version("protect: [b]\naccess: { operate: [S01ABC], approve: [U01ABC] }")).not.toBe(
      base,
    );
    expect(
      version("protect: [a]\naccess: { operate: [S01ABC, U1A2], approve: [U01ABC] }"),
    ).not.toBe(base);
  });
});

/**
 * Files, and the versions that 1.0 gives them: the same file has the same version for ever, or an upgrade cancels what waits. If one of these changes, mend `statedRules`, not the number.
 */
const known: readonly (readonly [file: string, version: string])[] = [
  ["{}", "221c648f741a"],
  ["access: { view: [], operate: [S01ONCALL] }", "06000676a270"],
  ["limits: { destructivePerHour: 7 }", "b43b96e52e3c"],
  ["protect: [vault-*]\nchannels: [C01OPS]", "c24c80052d01"],
  [
    "access: { approve: [U01ABC, S01ABC] }\ntiming: { approvalExpires: 20m }\napprovals: [{ operations: [vm.*], votes: [{ from: [U01ABC] }, { from: [S01ABC], required: 2 }], expires: 420s }, { operations: [project.*], required: 0 }]",
    "73146828cced",
  ],
  [
    "teams: { pay: { projects: [payments], operate: [S01ONCALL], channel: C01OPS } }",
    "37546b830f99",
  ],
  [
    'attestation: { pins: [{ targets: [a], measurements: ["0xABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABAB"] }], maxSnapshotAge: 7d, endorsements: x, refresh: {} }',
    "7b347ec3655a",
  ],
  [
    'attestation: { appraisal: [{ targets: [a], accept: [{ status: OutOfDate, until: "2027-01-01" }], minimumTcb: [{ product: Milan, models: [1], snp: 3 }], requireBinding: true, maxAge: 3d }, {}] }',
    "58d22d3f8b46",
  ],
];

describe("the version of a file", () => {
  it.for(known)("is the same in every release: %s", ([file, expected]) => {
    expect(version(file)).toBe(expected);
  });

  it("isn't changed by services of the API, which have a version of their own", () => {
    const file = "access: { operate: [S01ONCALL] }\n";
    const service = (view: string) =>
      `services: { ci: { tokens: ["sha256:${"a".repeat(64)}"], view: [${view}] } }`;
    const [none, one, two] = [file, file + service("web"), file + service("db")].map(policy);
    if (!none || !one || !two) throw new Error("not read");
    expect(policyVersion(one)).toBe(policyVersion(none));
    expect(new Set([none, one, two].map(servicesVersion)).size).toBe(3);
  });

  it("has a part for each section that decides, whichever file it was read from", () => {
    const [a, b] = [policy("protect: [a]\naccess: { operate: [S01ABC] }"), policy("protect: [b]")];
    expect(policyVersion({ ...a, protect: b.protect })).toBe(
      version("protect: [b]\naccess: { operate: [S01ABC] }"),
    );
  });
});

describe("a length of time", () => {
  it("is a number with a unit", () => {
    expect(["500ms", "15s", "2m", "1h", "7d", "1.5s"].map((text) => parseDuration(text))).toEqual([
      500, 15_000, 120_000, 3_600_000, 604_800_000, 1_500,
    ]);
    expect(
      ["", "15", "s", "-1s", "1e3s", "0x1s", "1w", "١s", "1,5s", "0ms"].map((text) =>
        parseDuration(text),
      ),
    ).toEqual(Array.from({ length: 10 }, () => undefined));
  });
});
