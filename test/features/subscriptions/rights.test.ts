import { judgeMatrix } from "../../core/permit/judge-matrix.ts";
import { subscriptions } from "../../../src/features/subscriptions/index.ts";

judgeMatrix(
  `
command              class       approvals  member view operate approve administer breakGlass guest external bot deactivated
gatehouse subscribe  change   0          -      -    yes     -       -          -          -     -        -   -
gatehouse unsubscribe  change  0        -      -    yes     -       -          -          -     -        -   -
`,
  subscriptions.commands ?? [],
);
