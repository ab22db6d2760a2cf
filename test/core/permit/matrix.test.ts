import { describe, expect, it } from "vitest";
import { commands } from "../../../src/commands/index.ts";
import { commands as all } from "../../../src/features/index.ts";
import { emptyPolicy } from "../../../src/config/policy-file.ts";
import { judgeMatrix, nobodyListed } from "./judge-matrix.ts";
import { permissionMatrix, roles } from "./permission-matrix.ts";
import { policyOf } from "./sample.ts";

/**
 * The table of who may run which command, with a row for each command and a column for each kind of
 * person. `approvals` is how many others must agree without a rule in policy. A command without a
 * row fails the build: decide who may run it, then add a row. Commands of features have their rows
 * in the tests of the feature.
 */
const expected = `
command              class       approvals  member view operate approve administer breakGlass guest external bot deactivated
vm list              read        0          -      yes  yes     yes     yes        yes        yes   -        -   -
vm show              read        0          -      yes  yes     yes     yes        yes        yes   -        -   -
vm metrics           read        0          -      yes  yes     yes     yes        yes        yes   -        -   -
vm start             change      0          -      -    yes     -       -          -          -     -        -   -
vm stop              disrupt     0          -      -    yes     -       -          -          -     -        -   -
vm restart           disrupt     0          -      -    yes     -       -          -          -     -        -   -
vm resize            disrupt     0          -      -    yes     -       -          -          -     -        -   -
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
gatehouse audit      administer  0          -      -    -       -       yes        -          -     -        -   -
`;

/** A policy whose lists are empty. Each column adds a person to the list that it is about. */
const nobody = policyOf(nobodyListed);

judgeMatrix(expected, commands);

describe("who may run what", () => {
  it("names the columns as policy does", () => {
    const [head = ""] = expected.trim().split("\n");
    expect(head.split(/\s+/).slice(3)).toEqual([...roles]);
  });

  it("never lets a role change anything without a policy, and lets every full member look", () => {
    for (const { class: of, may } of permissionMatrix(emptyPolicy(), all)) {
      const { member, operate, approve, administer, breakGlass, ...others } = may;
      if (of === "read")
        expect([member, operate, approve, administer, breakGlass]).toEqual(Array(5).fill(true));
      else expect(member).toBe(false);
      expect([others.external, others.bot, others.deactivated]).toEqual([false, false, false]);
    }
  });

  it("asks for approvals exactly where something is destroyed, or what is expected of a VM changes", () => {
    for (const { command, class: of, approvals } of permissionMatrix(nobody, all)) {
      const isPin = /^gatehouse pins \w/.test(command);
      expect(approvals).toBe(of === "destroy" || isPin ? 1 : 0);
    }
  });
});
