import { describe, expect, it } from "vitest";
import { commands } from "../../src/features/index.ts";
import { emptyPolicy } from "../../src/config/policy-file.ts";
import { permissionMatrix, roles } from "../policy/permission-matrix.ts";
import { policyOf } from "../policy/sample.ts";
import { mayWith, type Place, teamLists } from "../../scripts/rights-table.ts";
import { targetArgument, isChange } from "../../src/registry/define.ts";

/**
 * Who may run what: a row for each command, a column for each kind of person. `approvals` is how many others must agree
 * without a rule in policy. A command that isn't in here fails the build: decide who may run it, then write it down.
 */
const expected = `
command              class       approvals  member view operate approve administer breakGlass guest external bot deactivated
vm list              read        0          -      yes  yes     yes     yes        yes        yes   -        -   -
vm show              read        0          -      yes  yes     yes     yes        yes        yes   -        -   -
vm metrics           read        0          -      yes  yes     yes     yes        yes        yes   -        -   -
vm attest            read        0          -      yes  yes     yes     yes        yes        yes   -        -   -
vm start             change      0          -      -    yes     -       -          -          -     -        -   -
vm stop              disrupt     0          -      -    yes     -       -          -          -     -        -   -
vm restart           disrupt     0          -      -    yes     -       -          -          -     -        -   -
vm resize            disrupt     0          -      -    yes     -       -          -          -     -        -   -
vm snapshot          change      0          -      -    yes     -       -          -          -     -        -   -
vm snapshots         read        0          -      yes  yes     yes     yes        yes        yes   -        -   -
vm restore           destroy     1          -      -    yes     -       -          -          -     -        -   -
vm console           secret      0          -      -    yes     -       -          -          -     -        -   -
project list         read        0          -      yes  yes     yes     yes        yes        yes   -        -   -
project show         read        0          -      yes  yes     yes     yes        yes        yes   -        -   -
project create       change      0          -      -    yes     -       -          -          -     -        -   -
project update       disrupt     0          -      -    yes     -       -          -          -     -        -   -
project delete       destroy     1          -      -    yes     -       -          -          -     -        -   -
gatehouse help       read        0          -      yes  yes     yes     yes        yes        yes   -        -   -
gatehouse jobs       read        0          -      yes  yes     yes     yes        yes        yes   -        -   -
gatehouse approvals  read        0          -      yes  yes     yes     yes        yes        yes   -        -   -
gatehouse status     read        0          -      yes  yes     yes     yes        yes        yes   -        -   -
gatehouse can-i      read        0          -      yes  yes     yes     yes        yes        yes   -        -   -
gatehouse why        read        0          -      yes  yes     yes     yes        yes        yes   -        -   -
gatehouse pins       read        0          -      yes  yes     yes     yes        yes        yes   -        -   -
gatehouse pins propose  change   1          -      -    yes     -       -          -          -     -        -   -
gatehouse pins drop  change      1          -      -    yes     -       -          -          -     -        -   -
gatehouse digest     change      0          -      -    yes     -       -          -          -     -        -   -
gatehouse subscribe  change   0          -      -    yes     -       -          -          -     -        -   -
gatehouse unsubscribe  change  0        -      -    yes     -       -          -          -     -        -   -
gatehouse audit      administer  0          -      -    -       -       yes        -          -     -        -   -
gatehouse freeze     administer  0          -      -    -       yes     yes        -          -     -        -   -
gatehouse thaw       administer  0          -      -    -       -       yes        -          -     -        -   -
`;

const rows = new Map(
  expected
    .trim()
    .split("\n")
    .slice(1)
    .map((line) => {
      const [name = "", commandClass = "", approvals = "", ...may] = line
        .trim()
        .split(/\s{2,}|(?<=\s)(?=yes|-)/);
      return [
        name,
        { commandClass, approvals: Number(approvals), may: may.map((one) => one.trim() === "yes") },
      ] as const;
    }),
);

/** Nobody is in any list but the one that the column is about. */
const nobody = policyOf(
  `access: { view: [], operate: [], approve: [], administer: [], breakGlass: [] }`,
);

describe("who may run what", () => {
  it.each(commands.map((command) => [command.name, command] as const))(
    "is written down here for %s",
    (name, command) => {
      const row = rows.get(name);
      if (!row) throw new Error(`${name} has no row in the matrix: decide who may run it`);
      const [found] = permissionMatrix(nobody, [command]);
      expect(found).toMatchObject({ class: row.commandClass, approvals: row.approvals });
      expect(Object.fromEntries(roles.map((role) => [role, found?.may[role]]))).toEqual(
        Object.fromEntries(roles.map((role, index) => [role, row.may[index]])),
      );
    },
  );

  it("has no row for a command that isn't there", () => {
    const names = new Set<string>(commands.map(({ name }) => name));
    expect([...rows.keys()].filter((name) => !names.has(name))).toEqual([]);
  });

  it("names the columns as policy does", () => {
    const [head = ""] = expected.trim().split("\n");
    expect(head.split(/\s+/).slice(3)).toEqual([...roles]);
  });

  it("never lets a role change anything without a policy, and lets every full member look", () => {
    for (const { class: of, may } of permissionMatrix(emptyPolicy(), commands)) {
      const { member, operate, approve, administer, breakGlass, ...others } = may;
      if (of === "read")
        expect([member, operate, approve, administer, breakGlass]).toEqual(Array(5).fill(true));
      else expect(member).toBe(false);
      expect([others.external, others.bot, others.deactivated]).toEqual([false, false, false]);
    }
  });

  it("asks for approvals exactly where something is destroyed, or what is expected of a VM changes", () => {
    for (const { command, class: of, approvals } of permissionMatrix(nobody, commands)) {
      const isPin = /^gatehouse pins \w/.test(command);
      expect(approvals).toBe(of === "destroy" || isPin ? 1 : 0);
    }
  });

  it("lets no rule of gatehouse.yml take the one approval of a pin away", () => {
    const lax = policyOf(
      `access: { view: [] }\napprovals: [{ operations: ["gatehouse.pins.*"], required: 0 }]`,
    );
    const pins = permissionMatrix(lax, commands).filter(({ command }) => / pins \w/.test(command));
    expect(pins.map(({ approvals }) => approvals)).toEqual([1, 1]);
  });
});

/**
 * The same for teams: somebody in one list of one place alone, on a VM or project of a team. A team's own lists give what
 * those of `access` give without teams; nothing else gives anything, but `access.administer`.
 */
describe("who may run what on a target of a team", () => {
  const places: readonly Place[] = ["its team", "another team", "access"];

  it.each(commands.map((command) => [command.name, command] as const))(
    "is decided by that team for %s",
    (name, command) => {
      const row = rows.get(name);
      const isNamed = (role: string) => row?.may[roles.findIndex((one) => one === role)] === true;
      const hasTarget =
        targetArgument(command) !== undefined ||
        (isChange(command) && command.on === "new-project");
      for (const place of places)
        for (const list of teamLists) {
          // The channel is the team's, or no team's: who is told there must see what is told there
          const speaks = command.kind === "read" && command.speaksFor !== undefined;
          const isElsewhere = hasTarget || (speaks && place === "another team");
          const isTheirs = place === "its team" || !isElsewhere;
          const expectedHere = isTheirs && isNamed(list);
          expect(mayWith(command, place, list), `${list} of ${place}`).toBe(expectedHere);
        }
      expect(mayWith(command, "access", "administer")).toBe(isNamed("administer"));
    },
  );
});
