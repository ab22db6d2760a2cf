import { judgeMatrix } from "../../core/permit/judge-matrix.ts";
import { digests } from "../../../src/features/digests/index.ts";

judgeMatrix(
  `
command              class       approvals  member view operate approve administer breakGlass guest external bot deactivated
gatehouse digest     change      0          -      -    yes     -       -          -          -     -        -   -
`,
  digests.commands ?? [],
);
