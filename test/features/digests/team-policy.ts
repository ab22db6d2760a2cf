import { twoTeamsWith } from "../../core/permit/two-teams.ts";

/** Digests in the channel of payments, one of them about its databases alone, and one where nobody has a team. */
export const twoTeams = twoTeamsWith(
  `digests:
  - { channel: C02STATUS, at: "09:00" }
`,
  `    digests:
      - { at: "09:00" }
      - { at: "09:00", targets: ["db-*"] }
`,
);
