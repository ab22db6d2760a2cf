import type { Row, RowNotRun } from "../row.ts";
import { auditRows } from "./audit.ts";
import { clockRows } from "./clock.ts";
import { digestRows } from "./digest.ts";
import { inputRows } from "./input.ts";
import { mechanismRows } from "./mechanism.ts";
import { networkRows } from "./network.ts";
import { peopleRows } from "./people.ts";
import { processRows } from "./process.ts";
import { redisRows } from "./redis.ts";
import { serviceRows } from "./service.ts";
import { slackRows } from "./slack.ts";

/** The whole matrix, in its order. */
export const rows: readonly (Row | RowNotRun)[] = [
  ...slackRows,
  ...redisRows,
  ...serviceRows,
  ...processRows,
  ...auditRows,
  ...clockRows,
  ...networkRows,
  ...inputRows,
  ...peopleRows,
  ...digestRows,
  ...mechanismRows,
];
