import type { Row, RowNotRun } from "../row.ts";
import { auditRows } from "./audit.ts";
import { clockRows } from "./clock.ts";
import { digestRows } from "./digest.ts";
import { inputRows } from "./input.ts";
import { mechanismRows } from "./mechanism.ts";
import { killRows } from "./kills.ts";
import { networkRows } from "./network.ts";
import { peopleRows } from "./people.ts";
import { processRows } from "./process.ts";
import { redisRows } from "./redis.ts";
import { redisTroubleRows } from "./redis-troubles.ts";
import { serviceRows } from "./service.ts";
import { serviceStateRows } from "./service-states.ts";
import { slackRows } from "./slack.ts";
import { slackOutageRows } from "./slack-outages.ts";

/** The whole matrix, in its order. */
export const rows: readonly (Row | RowNotRun)[] = [
  ...slackRows,
  ...slackOutageRows,
  ...redisRows,
  ...redisTroubleRows,
  ...serviceRows,
  ...serviceStateRows,
  ...killRows,
  ...processRows,
  ...auditRows,
  ...clockRows,
  ...networkRows,
  ...inputRows,
  ...peopleRows,
  ...digestRows,
  ...mechanismRows,
];
