import { policyOf } from "../../core/permit/sample.ts";

/**
 * The team payments has #ops, the team search has #vendor, and the team lab has no channel. The
 * other projects have no team.
 */
export const twoTeams = policyOf(`
access: { operate: ["U0PLA"], administer: ["U9ADMIN"] }
audit: { channel: C03AUDIT }
alerts: { channel: C02STATUS }
digests:
  - { channel: C02STATUS, at: "09:00" }
teams:
  payments:
    projects: ["payments*"]
    operate: ["U0PAY"]
    channel: C01OPS
    digests:
      - { at: "09:00" }
      - { at: "09:00", targets: ["db-*"] }
  search:
    projects: ["search*"]
    operate: ["U0SEA"]
    channel: C07VENDOR
  lab:
    projects: ["lab"]
    operate: ["U0LAB"]
`);
