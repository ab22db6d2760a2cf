import type { Row } from "./row.ts";
import { addressRows } from "./network/addresses.ts";
import { attestationRows } from "./attestation/evidence.ts";
import { auditRows } from "./audit/trail.ts";
import { clockRows } from "./clock/wrong-clocks.ts";
import { consoleRows } from "./people/console.ts";
import { apiRows } from "./api/api.ts";
import { digestRows } from "./digests/digests.ts";
import { subscriptionRows } from "./subscriptions/subscriptions.ts";
import { fuzzRows } from "./fuzz.ts";
import { inputRows } from "./input/names.ts";
import { ledgerRows } from "./audit/ledger.ts";
import { limitRows } from "./people/limits.ts";
import { mechanismRows } from "./mechanism.ts";
import { killRows } from "./process/kills.ts";
import { mentionRows } from "./people/mentions.ts";
import { nameRows } from "./people/names.ts";
import { networkRows } from "./network/lines.ts";
import { peopleRows } from "./people/votes.ts";
import { policyRows } from "./process/policies.ts";
import { processRows } from "./process/freezes.ts";
import { rolloutRows } from "./rollouts/rollouts.ts";
import { redisDiskRows } from "./redis/full-disk.ts";
import { recapRows } from "./slack/recaps.ts";
import { redisRows } from "./redis/restarts.ts";
import { redisFailoverRows } from "./redis/failovers.ts";
import { redisOutageRows } from "./redis/long-outage.ts";
import { failoverRows } from "./redis/failover.ts";
import { redisTroubleRows } from "./redis/troubles.ts";
import { lostJobRows } from "./redis/lost-jobs.ts";
import { secretRows } from "./audit/secrets.ts";
import { serviceRows } from "./service/lost-answers.ts";
import { serviceDeleteRows } from "./service/deletes.ts";
import { serviceLateRows } from "./service/late.ts";
import { serviceStateRows } from "./service/states.ts";
import { shapeRows } from "./input/shapes.ts";
import { slackRows } from "./slack/deliveries.ts";
import { sharedCardRows } from "./slack/shared-cards.ts";
import { teamCardRows } from "./slack/team-cards.ts";
import { slackOutageRows } from "./slack/outages.ts";
import { versionRows } from "./process/versions.ts";

/** Every row, in the order in which they run and are told. */
export const rows: readonly Row[] = [
  ...slackRows,
  ...slackOutageRows,
  ...sharedCardRows,
  ...teamCardRows,
  ...redisRows,
  ...redisTroubleRows,
  ...lostJobRows,
  ...failoverRows,
  ...redisDiskRows,
  ...redisOutageRows,
  ...redisFailoverRows,
  ...serviceRows,
  ...serviceStateRows,
  ...serviceDeleteRows,
  ...serviceLateRows,
  ...recapRows,
  ...killRows,
  ...processRows,
  ...versionRows,
  ...policyRows,
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
  ...nameRows,
  ...mentionRows,
  ...digestRows,
  ...subscriptionRows,
  ...rolloutRows,
  ...apiRows,
  ...attestationRows,
  ...mechanismRows,
  ...fuzzRows,
];

/** What the letters of an id mean. */
export const families = [
  { letter: "S", name: "Slack" },
  { letter: "R", name: "Redis" },
  { letter: "A", name: "API of the compute service" },
  { letter: "D", name: "dependencies" },
  { letter: "P", name: "processes" },
  { letter: "U", name: "audit" },
  { letter: "C", name: "clocks" },
  { letter: "N", name: "network" },
  { letter: "I", name: "input" },
  { letter: "X", name: "malicious users" },
  { letter: "G", name: "digests, subscriptions" },
  { letter: "RO", name: "rollouts" },
  { letter: "E", name: "API" },
  { letter: "V", name: "attestation" },
  { letter: "M", name: "mechanisms" },
  { letter: "F", name: "fuzz" },
] as const;

export const familyOf = (id: string): string => /^[A-Z]*/.exec(id)?.[0] ?? "";
