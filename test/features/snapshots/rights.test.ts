import { judgeMatrix } from "../../core/permit/judge-matrix.ts";
import { snapshots } from "../../../src/features/snapshots/index.ts";

judgeMatrix(
  `
command              class       approvals  member view operate approve administer breakGlass guest external bot deactivated
vm snapshot          change      0          -      -    yes     -       -          -          -     -        -   -
vm snapshots         read        0          -      yes  yes     yes     yes        yes        yes   -        -   -
vm restore           destroy     1          -      -    yes     -       -          -          -     -        -   -
`,
  snapshots.commands ?? [],
);
