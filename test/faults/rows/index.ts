import type { Row, RowNotRun } from "../row.ts";
import { addressRows } from "./addresses.ts";
import { auditRows } from "./audit.ts";
import { clockRows } from "./clock.ts";
import { consoleRows } from "./console.ts";
import { digestRows } from "./digest.ts";
import { fuzzRows } from "./fuzz.ts";
import { inputRows } from "./input.ts";
import { ledgerRows } from "./ledger.ts";
import { limitRows } from "./limits.ts";
import { mechanismRows } from "./mechanism.ts";
import { killRows } from "./kills.ts";
import { networkRows } from "./network.ts";
import { peopleRows } from "./people.ts";
import { processRows } from "./process.ts";
import { rollRows } from "./rolls.ts";
import { redisDiskRows } from "./redis-disk.ts";
import { recapRows } from "./recaps.ts";
import { redisRows } from "./redis.ts";
import { redisOutageRows } from "./redis-outage.ts";
import { redisTroubleRows } from "./redis-troubles.ts";
import { secretRows } from "./secrets.ts";
import { serviceRows } from "./service.ts";
import { serviceDeleteRows } from "./service-deletes.ts";
import { serviceLateRows } from "./service-late.ts";
import { serviceStateRows } from "./service-states.ts";
import { shapeRows } from "./shapes.ts";
import { slackRows } from "./slack.ts";
import { slackOutageRows } from "./slack-outages.ts";
import { versionRows } from "./versions.ts";

/** The whole matrix, in its order. */
export const rows: readonly (Row | RowNotRun)[] = [
  ...slackRows,
  ...slackOutageRows,
  ...redisRows,
  ...redisTroubleRows,
  ...redisDiskRows,
  ...redisOutageRows,
  ...serviceRows,
  ...serviceStateRows,
  ...serviceDeleteRows,
  ...serviceLateRows,
  ...recapRows,
  ...killRows,
  ...processRows,
  ...versionRows,
  ...ledgerRows,
  ...auditRows,
  ...secretRows,
  ...clockRows,
  ...networkRows,
  ...addressRows,
  ...inputRows,
  ...shapeRows,
  ...peopleRows,
  ...limitRows,
  ...consoleRows,
  ...digestRows,
  ...rollRows,
  ...mechanismRows,
  ...fuzzRows,
];
