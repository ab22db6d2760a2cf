import { policyOf } from "./sample.ts";

/**
 * Returns a policy with three teams: payments has #ops, search has #vendor, and lab has no channel.
 * Projects of other names have no team. A test may add sections, and lines to the team payments.
 */
export const twoTeamsWith = (sections = "", ofPayments = "") =>
  policyOf(`
access: { operate: ["U0PLA"], administer: ["U9ADMIN"] }
audit: { channel: C03AUDIT }
alerts: { channel: C02STATUS }
${sections}teams:
  payments:
    projects: ["payments*"]
    operate: ["U0PAY"]
    channel: C01OPS
${ofPayments}  search:
    projects: ["search*"]
    operate: ["U0SEA"]
    channel: C07VENDOR
  lab:
    projects: ["lab"]
    operate: ["U0LAB"]
`);

export const twoTeams = twoTeamsWith();
