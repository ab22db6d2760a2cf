import { describe, expect, it } from "vitest";
import { parsePolicy } from "../../src/config/policy-file.ts";
import { policyTerms } from "../../src/features/index.ts";

/** The problems of a file whose first line names approvers and operators. */
function problems(text: string, access = `approve: ["S02LEADS"], operate: ["*"]`) {
  const whole = `access: { ${access} }\n${text}`;
  const read = parsePolicy(whole, "gatehouse.yml", policyTerms);
  return "problems" in read ? read.problems : [];
}

const rule = (operation: string, required = 1) =>
  `approvals:\n  - { operations: ["vm.restart"], required: 0 }\n  - { operations: ["${operation}"], required: ${required} }`;

describe("a rule that names a command which isn't there", () => {
  it.each([
    ["restore", "did you mean vm.restore?"],
    ["vm.restor", "did you mean vm.restore?"],
    ["vm.reboot", "known are vm.start, vm.stop, vm.restart,"],
    ["vms.*", "known are"],
  ])("%s is refused with its line: %s", (operation, rest) => {
    expect(problems(rule(operation))).toEqual([
      expect.stringContaining(
        `gatehouse.yml line 4: approvals[2].operations[1] (${operation}) is not a command; ${rest}`,
      ),
    ]);
  });

  it.each(["vm.list", "gatehouse.freeze", "gatehouse.jobs", "gatehouse.f*", "vm.sh*"])(
    "%s is refused, because nothing of it waits",
    (operation) => {
      expect(problems(rule(operation))).toEqual([
        `gatehouse.yml line 4: approvals[2].operations[1] (${operation}) never needs approval`,
      ]);
    },
  );

  it.each(["*", "vm.*", "vm.re*", "*.delete", "vm.console", "project.create", "gatehouse.pins.*"])(
    "%s holds for what waits",
    (operation) => {
      expect(problems(rule(operation))).toEqual([]);
    },
  );
});

describe("an entry of approvals that leaves nothing to a later one", () => {
  const after = (first: string, second: string) =>
    problems(`approvals:\n  - { ${first} }\n  - { ${second}, required: 1 }`);
  const never = "can never apply: approvals[1] comes first and matches the same";

  it.each([
    [`operations: ["vm.*"], required: 1`, `operations: ["vm.restore"], targets: ["prod-*"]`],
    [`operations: ["*"], required: 0`, `operations: ["project.delete"]`],
    [`operations: ["vm.re*"], required: 0`, `operations: ["vm.restart", "vm.resize"]`],
    [
      `operations: ["vm.stop"], targets: ["prod-*"], required: 0`,
      `operations: ["vm.stop"], targets: ["prod-1", "PROD-db-*"]`,
    ],
    [
      `operations: ["vm.stop"], targets: ["pay"], required: 0`,
      `operations: ["vm.stop"], targets: ["pay/db-*"]`,
    ],
    [
      `operations: ["vm.stop"], targets: ["*"], required: 0`,
      `operations: ["vm.stop"], targets: ["pay/db-*"]`,
    ],
    [
      `operations: ["vm.stop"], targets: ["pay/*"], required: 0`,
      `operations: ["vm.stop"], targets: ["pay/db-?"]`,
    ],
    [
      `operations: ["vm.stop"], targets: ["prod–*"], required: 0`,
      `operations: ["vm.stop"], targets: ["prod-1"]`,
    ],
  ])("is told, with the line of the later one: %s before %s", (first, second) => {
    expect(after(first, second)).toEqual([
      `gatehouse.yml line 4: approvals[2] ${never}; put the narrower or stricter one first, or merge them`,
    ]);
  });

  it("is told of one command, too, and of several entries that do it together", () => {
    expect(
      after(`operations: ["vm.stop"], required: 0`, `operations: ["vm.start", "vm.stop"]`),
    ).toEqual([
      `gatehouse.yml line 4: approvals[2].operations[2] (vm.stop) ${never}; put the narrower or stricter one first, or merge them`,
    ]);
    expect(
      problems(`approvals:
  - { operations: ["vm.stop"], required: 0 }
  - { operations: ["vm.start"], required: 0 }
  - { operations: ["vm.start", "vm.stop"], targets: ["prod-*"], required: 1 }`),
    ).toEqual([
      expect.stringContaining(
        "approvals[3] can never apply: approvals[1] and approvals[2] come first and match the same;",
      ),
    ]);
  });

  it.each([
    [`operations: ["vm.restore"], targets: ["prod-*"], required: 2`, `operations: ["vm.*"]`],
    [
      `operations: ["vm.stop"], targets: ["prod-*"], required: 0`,
      `operations: ["vm.stop"], targets: ["prod-1", "db-*"]`,
    ],
    [
      `operations: ["vm.stop"], targets: ["prod-?"], required: 0`,
      `operations: ["vm.stop"], targets: ["prod-*"]`,
    ],
    [
      `operations: ["vm.stop"], targets: ["pay/*"], required: 0`,
      `operations: ["vm.stop"], targets: ["pay"]`,
    ],
    [`operations: ["vm.stop"], targets: ["db-1"], required: 0`, `operations: ["vm.stop"]`],
    [`operations: ["vm.restart"], required: 0`, `operations: ["vm.re*"]`],
  ])("isn't where the later one still decides something: %s before %s", (first, second) => {
    expect(after(first, second)).toEqual([]);
  });
});

describe("a name in the file that can match nothing", () => {
  const places = (glob: string) => [
    `protect: [${glob}]`,
    `confirm: [${glob}]`,
    `approvals: [{ operations: ["vm.stop"], targets: [${glob}], required: 1 }]`,
    `attestation: { appraisal: [{ targets: [${glob}], vmpl: 1 }] }`,
  ];

  it.each([
    "^prod-.*$",
    "^prod",
    "prod$",
    ".*",
    "prod-.*",
    "prod-[0-9]+",
    "web-(1|2)",
    "web.+",
    "db|web",
    String.raw`web\d`,
    "web-{2}",
  ])("is a regular expression, where a glob is meant: %s", (text) => {
    for (const file of places(JSON.stringify(text).replaceAll("'", "''")))
      expect(problems(file)).toEqual([
        expect.stringMatching(
          /(targets|protect|confirm)\[1\] must be a name or a glob, not a regular expr/,
        ),
      ]);
  });

  it.each(["a/b/c", "/prod", "prod/", "a//b", "/", "pay／db／1"])(
    "has slashes in vain: %s",
    (text) => {
      for (const file of places(JSON.stringify(text)))
        expect(problems(file)).toEqual([
          expect.stringMatching(
            /(targets|protect|confirm)\[1\] must be a name, or project\/name with one slash/,
          ),
        ]);
    },
  );

  it("is told of a team's and a service's projects, too", () => {
    for (const project of ["^pay-.*$", "pay-.*"]) {
      const file = (rest: string) =>
        problems(`teams: { pay: { projects: ["${project}"]${rest} } }`);
      expect(file("")).toEqual([
        expect.stringContaining("teams.pay.projects[1] must be a name or a glob, not"),
      ]);
    }
  });

  it.each(["prod-*", "web.*", "web-1.example.com", "pay/*", "*/db-?", "a_b", "été-*", "*"])(
    "isn't one with signs that names and globs have: %s",
    (text) => {
      for (const file of places(JSON.stringify(text))) expect(problems(file)).toEqual([]);
    },
  );
});

describe("a rule that nobody could fulfill", () => {
  it("is refused when all approvers are known and too few", () => {
    expect(problems(rule("vm.restore", 3), `approve: [U0AMIR, U0BEA], operate: ["*"]`)).toEqual([
      "gatehouse.yml line 4: approvals[2].required is 3, but access.approve names 2 people: requests could never be approved",
    ]);
    expect(problems(rule("vm.restore", 1), `operate: ["*"]`)).toHaveLength(1);
  });

  const withTeam = (approvals: string, team = "") =>
    problems(`teams:
  pay: { projects: ["pay", "pay-*"], operate: ["S0ON"], approve: [U0AMIR, U0BEA]${team} }
approvals:
${approvals}`);

  it("is refused with teams too, where a rule surely decides for what a team has", () => {
    const few =
      "approvals[1].required is 3, but teams.pay.approve names 2 people: requests could never be approved";
    for (const targets of ["", `targets: ["pay-eu/*"], `, `targets: ["x", "p*"], `])
      expect(withTeam(`  - { operations: ["vm.*"], ${targets}required: 3 }`)).toEqual([
        expect.stringContaining(few),
      ]);
    expect(withTeam(`  - { operations: ["vm.*"], targets: ["db-*"], required: 3 }`)).toEqual([]);
    expect(withTeam(`  - { operations: ["vm.*"], required: 2 }`)).toEqual([]);
    expect(
      withTeam(`  - { operations: ["vm.restore"], targets: ["pay*"], required: 1 }
  - { operations: ["vm.restore"], required: 3 }`),
    ).toEqual([]);
  });

  it("is refused where it names no target, as that would match none", () => {
    expect(problems(`approvals: [{ operations: ["vm.*"], targets: [], required: 1 }]`)).toEqual([
      expect.stringContaining("must name at least one VM or project, or be omitted for all"),
    ]);
  });

  it("is refused where a team's break-glass could never be reviewed", () => {
    const rights = (more: string) =>
      problems(`teams: { pay: { projects: [pay], operate: [U0X], ${more} } }`);
    expect(rights("approve: [U0AMIR], breakGlass: [U0AMIR]")).toEqual([
      expect.stringContaining(
        "teams.pay.breakGlass[1] (U0AMIR) could never get a review signed: add someone else to access.administer or teams.pay.approve",
      ),
    ]);
    expect(rights("approve: [U0AMIR, U0BEA], breakGlass: [U0AMIR]")).toEqual([]);
    expect(rights("approve: [S0LEADS], breakGlass: [U0AMIR]")).toEqual([]);
  });

  it("is refused when everybody who may ask is one of those who are needed", () => {
    expect(
      problems(rule("vm.restore", 2), `approve: [U0AMIR, U0BEA], operate: [U0BEA, U0BEA]`),
    ).toEqual([
      "gatehouse.yml line 4: approvals[2].required is 2, but access.approve names 2 people, and the requester doesn't count: requests could never be approved",
    ]);
  });

  const seats = (votes: string, access?: string) =>
    problems(`approvals: [{ operations: ["vm.restore"], votes: [${votes}] }]`, access);
  const few = (at: number, required: number, spared = "") =>
    `gatehouse.yml line 2: approvals[1].votes[${at}].required is ${required}, but too few people are named${spared}, and each counts once: requests could never be approved`;

  it.each([
    [
      "one for two seats, beside many",
      "{ from: [U0A] }, { from: [U0A] }, { from: [U0B, U0C, U0D] }",
      2,
      1,
    ],
    [
      "two for three",
      "{ from: [U0A, U0B], required: 2 }, { from: [U0B] }, { from: [U0C, U0D] }",
      2,
      1,
    ],
    ["a list within a list", "{ from: [U0A, U0B] }, { from: [U0A] }, { from: [U0B] }", 3, 1],
    ["one in a group's shadow", "{ from: [S0ANYONE] }, { from: [U0A] }, { from: [U0A] }", 3, 1],
  ])("is refused where lists overlap: %s", (_what, votes, at, required) => {
    expect(seats(votes)).toEqual([few(at, required)]);
  });

  it("is refused where each who may ask has a seat that no one else could take", () => {
    const spared = ", the requester doesn't count";
    expect(seats("{ from: [U0A] }, { from: [U0B] }", "operate: [U0A]")).toEqual([
      few(1, 1, spared),
    ]);
    expect(seats("{ from: [U0A, U0B], required: 2 }", "operate: [U0A, U0B]")).toEqual([
      few(1, 2, spared),
    ]);
    for (const operate of ["[U0A, U0I]", "[S01ONCALL]", '["*"]', "[]"])
      expect(seats("{ from: [U0A] }, { from: [U0B] }", `operate: ${operate}`)).toEqual([]);
    expect(
      problems(
        `teams: { pay: { projects: [pay], operate: [U0I] } }
approvals: [{ operations: ["vm.restore"], votes: [{ from: [U0A] }] }]`,
        "operate: [U0A]",
      ),
    ).toEqual([]);
  });

  it("isn't where overlapping lists can be filled by different people", () => {
    expect(seats("{ from: [U0A, U0B] }, { from: [U0B, U0C] }, { from: [U0A, U0C] }")).toEqual([]);
    expect(seats("{ from: [U0A, U0B], required: 2 }, { from: [U0B, U0C] }")).toEqual([]);
    expect(seats("{ from: [S0ANYONE] }, { from: [U0A] }", "operate: [U0I]")).toEqual([]);
  });

  it.each([
    [`approve: [U0AMIR, S02LEADS], operate: ["*"]`, 5],
    [`approve: ["*"], operate: ["*"]`, 20],
    [`approve: [U0AMIR, U0BEA], operate: [S01ONCALL]`, 2],
    [`approve: [U0AMIR, U0BEA], operate: [U0OLIVIA, U0BEA]`, 2],
    [`approve: [], operate: []`, 0],
  ])("isn't when groups may help or a requester is left: %s, %i", (access, required) => {
    expect(problems(rule("vm.restore", required), access)).toEqual([]);
  });
});

describe("timing under which reads would prove nothing", () => {
  it.each([
    ["quiesce: 31s", "timing.quiesce must be at least 2s + 2 × httpTimeout (32s)"],
    ["httpTimeout: 30s", "timing.quiesce must be at least 2s + 2 × httpTimeout (62s)"],
    ["httpTimeout: 900ms", "timing.httpTimeout must be at least 1s"],
    ["settleDeadline: 64s", "timing.settleDeadline must be more than quiesce + 4s (64s)"],
    ["pollFirst: 2s", "timing.pollFirst isn't known"],
  ])("%s is refused: %s", (timing, problem) => {
    expect(problems(`protect: []\ntiming: { ${timing} }`)).toEqual([
      expect.stringContaining(`gatehouse.yml line 3: ${problem}`),
    ]);
  });

  it("names the line of the value itself, where there is one", () => {
    expect(problems(`timing:\n  httpTimeout: 15s\n  quiesce: 20s`)[0]).toMatch(
      /^gatehouse\.yml line 4: timing\.quiesce/,
    );
  });

  it("isn't what just fits", () => {
    expect(problems(`timing: { httpTimeout: 1s, quiesce: 4s }`)).toEqual([]);
  });
});

describe("break-glass whose review nobody else could sign", () => {
  it("is refused with its line and with what to do", () => {
    const alone = `breakGlass: ["U0ADA"], administer: ["U0ADA"], approve: []`;
    expect(problems("", alone)).toEqual([
      "gatehouse.yml line 1: access.breakGlass[1] (U0ADA) could never get a review signed: add someone else to access.administer or access.approve",
    ]);
  });

  it.each([
    ["another administrator", `breakGlass: ["U0ADA"], administer: ["U0ADA", "U0BEA"]`],
    ["an approver", `breakGlass: ["U0ADA"], administer: ["U0ADA"], approve: ["U0AMIR"]`],
    ["a group, whose members only Slack knows", `breakGlass: ["U0ADA"], approve: ["S02LEADS"]`],
  ])("is fine where %s could", (_who, access) => {
    expect(problems("", access)).toEqual([]);
  });
});

const hash = (digit: string) => `sha256:${digit.repeat(64)}`;
const sources = (lines: string) => `sources:\n${lines}`;
const service = (name: string, rest: string) =>
  `  ${name}: { tokens: ["${hash("a")}"], channel: C01OPS, ${rest} }\n`;

describe("what a source offers or a service proposes", () => {
  it.each([
    ["snapshot", "is not a command; did you mean vm.snapshot?"],
    ["project.delete", "is not about a VM, so it can't be offered"],
    ["vm.*", "must be one command: each is a button"],
  ])("%s is refused with its line where it can't be offered", (operation, rest) => {
    const text = sources(
      `  prometheus: { format: alertmanager, offer: [vm.stop, "${operation}"] }`,
    );
    expect(problems(text)).toEqual([
      `gatehouse.yml line 3: sources.prometheus.offer[2] (${operation}) ${rest}`,
    ]);
  });

  it("is refused with its line where it mentions a name, everyone, or no one", () => {
    const text = sources(
      '  am: { format: plain, notify: { critical: ["@oncall"], warning: ["*"], "*": [] } }',
    );
    expect(problems(text)).toEqual([
      expect.stringMatching(
        /line 3: sources\.am\.notify\.critical\[1\] must be a user ID \(U…\) or/,
      ),
      expect.stringMatching(/line 3: sources\.am\.notify\.warning\[1\] must be a user ID/),
      expect.stringMatching(
        /line 3: sources\.am\.notify\.\* must name at least one person or group/,
      ),
    ]);
    const fine = '  am: { format: plain, notify: { critical: [S01ONCALL], "*": [U0OLIVIA] } }';
    expect(problems(sources(fine))).toEqual([]);
  });

  it.each([
    ["snapshot", "is not a command; did you mean vm.snapshot?"],
    ["vm.list", "changes nothing, so it can't be proposed"],
  ])("%s is refused with its line where it can't be proposed", (operation, rest) => {
    const propose = `propose: [{ operations: ["vm.re*", ${operation}], targets: ["web-*"] }]`;
    expect(problems(`services:\n${service("deploy", propose)}`)).toEqual([
      `gatehouse.yml line 3: services.deploy.propose[1].operations[2] (${operation}) ${rest}`,
    ]);
  });
});

describe("callers of the API that nothing could tell apart", () => {
  it.each([
    ["my-alerts", "MY_ALERTS"],
    ["am", "am-file"],
  ])("are refused where %s and %s would read one variable", (one, other) => {
    const text = sources(`  ${one}: { format: plain }\n  ${other}: { format: plain }`);
    expect(problems(text)).toEqual([
      `gatehouse.yml line 4: sources.${other} reads its secret from the variable of ${one}, too: each caller needs its own`,
    ]);
  });

  it("are refused where two services have one token", () => {
    const two = service("deploy", "view: []") + service("agent", "view: []");
    expect(problems(`services:\n${two}`)).toEqual([
      "gatehouse.yml line 4: services.agent.tokens[1] is the token of deploy, too: each caller needs its own",
    ]);
  });

  it("are fine with names and tokens of their own", () => {
    const two =
      service("deploy", "view: []") + service("agent", "view: []").replace(hash("a"), hash("b"));
    expect(
      problems(`${sources("  am: { format: plain, offer: [vm.snapshot] }")}\nservices:\n${two}`),
    ).toEqual([]);
  });
});
