import { judgeMatrix } from "../../core/permit/judge-matrix.ts";
import { consoles } from "../../../src/features/consoles/index.ts";

judgeMatrix(
  `
command              class       approvals  member view operate approve administer breakGlass guest external bot deactivated
vm console           secret      0          -      -    yes     -       -          -          -     -        -   -
`,
  consoles.commands ?? [],
);
