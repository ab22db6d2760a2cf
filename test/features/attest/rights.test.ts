import { expect, it } from "vitest";
import { attestation } from "../../../src/features/attest/index.ts";
import { judgeMatrix } from "../../core/permit/judge-matrix.ts";
import { permissionMatrix } from "../../core/permit/permission-matrix.ts";
import { policyOf } from "../../core/permit/sample.ts";

const commands = attestation.commands ?? [];

judgeMatrix(
  `
command              class       approvals  member view operate approve administer breakGlass guest external bot deactivated
vm attest            read        0          -      yes  yes     yes     yes        yes        yes   -        -   -
gatehouse pins       read        0          -      yes  yes     yes     yes        yes        yes   -        -   -
gatehouse pins propose  change   1          -      -    yes     -       -          -          -     -        -   -
gatehouse pins drop  change      1          -      -    yes     -       -          -          -     -        -   -
`,
  commands,
);

it("lets no rule of gatehouse.yml take the one approval of a pin away", () => {
  const lax = policyOf(
    `access: { view: [] }\napprovals: [{ operations: ["gatehouse.pins.*"], required: 0 }]`,
  );
  const pins = permissionMatrix(lax, commands).filter(({ command }) => / pins \w/.test(command));
  expect(pins.map(({ approvals }) => approvals)).toEqual([1, 1]);
});
