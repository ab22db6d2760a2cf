import { judgeMatrix } from "../../core/permit/judge-matrix.ts";
import { freezes } from "../../../src/features/freeze/index.ts";

judgeMatrix(
  `
command              class       approvals  member view operate approve administer breakGlass guest external bot deactivated
gatehouse freeze     administer  0          -      -    -       yes     yes        -          -     -        -   -
gatehouse thaw       administer  0          -      -    -       -       yes        -          -     -        -   -
`,
  freezes.commands ?? [],
);
