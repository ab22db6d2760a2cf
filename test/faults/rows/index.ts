import type { Row } from "./row.ts";
import { addressRows } from "./network/addresses.ts";
import { attestationRows } from "./attestation/evidence.ts";
import { auditRows } from "./audit/trail.ts";
import { clockRows } from "./clock/wrong-clocks.ts";
import { consoleRows } from "./people/console.ts";
import { doorRows } from "./doors/doors.ts";
import { digestRows } from "./digests/digests.ts";
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
  ...rolloutRows,
  ...doorRows,
  ...attestationRows,
  ...mechanismRows,
  ...fuzzRows,
];

/** What the letters of an id mean. */
export const families = [
  {
    letter: "S",
    name: "Slack",
    about: "Slack repeats, delays, refuses, or loses what it should carry, in either direction.",
  },
  { letter: "R", name: "Redis", about: "Redis dies, hangs, forgets, is full, or takes no writes." },
  {
    letter: "A",
    name: "API of the compute service",
    about: "The service loses its answers, answers late or wrongly, or changes things by itself.",
  },
  {
    letter: "D",
    name: "dependencies",
    about: "What people are told when an outage is over (Slack's: S10b).",
  },
  {
    letter: "P",
    name: "processes",
    about:
      "Gateways and workers are killed, frozen, stopped, and replaced, at chosen points and at random.",
  },
  {
    letter: "U",
    name: "audit",
    about: "The audit trail, the ledger of sends, and secrets.",
  },
  {
    letter: "C",
    name: "clocks",
    about: "The clock of a worker, a gateway, or Redis is wrong or steps.",
  },
  {
    letter: "N",
    name: "network",
    about: "Connections break, slow down, and split; addresses and certificates are wrong.",
  },
  {
    letter: "I",
    name: "input",
    about: "Names, IDs, numbers, and flags that are hostile or only odd.",
  },
  {
    letter: "X",
    name: "malicious users",
    about:
      "People try what they aren't allowed to, forge what they can, or press at the wrong moment.",
  },
  {
    letter: "G",
    name: "digests",
    about: "Their worker dies, or their time passes.",
  },
  {
    letter: "RO",
    name: "rollouts",
    about: "Their processes die.",
  },
  {
    letter: "E",
    name: "doors",
    about: "Processes, Redis, and Slack fail while alerts and proposals come in.",
  },
  {
    letter: "V",
    name: "attestation",
    about: "Processes die while pins, endorsements, and rollouts change; lists expire.",
  },
  {
    letter: "M",
    name: "mechanisms",
    about: "One safeguard each that no other row would miss.",
  },
  {
    letter: "F",
    name: "fuzz",
    about: "Generated inputs for everything that reads input.",
  },
] as const;

export const familyOf = (id: string): string => /^[A-Z]*/.exec(id)?.[0] ?? "";
