import * as z from "zod";
import type { Policy } from "../../config/policy-file.ts";
import { defineSection, sectionOf, teamSectionOf } from "../../config/policy-section.ts";
import {
  type Weekday,
  channel,
  days,
  glob,
  section,
  some,
  timeOfDay,
  timezone,
} from "../../config/policy-values.ts";
import { counted } from "../../messages/markdown.ts";

/** The schedule of a channel's digest. */
const digest = {
  /** Local time, `HH:MM`. */
  at: timeOfDay,
  timezone: timezone.default("UTC"),
  days: days.prefault("daily"),
  /** Globs over VM and project names: the digest is only about these. */
  targets: some(glob, "VM or project").optional(),
};

const digests = z.array(section({ channel, ...digest })).default([]);

export interface DigestRule {
  readonly channel: string;
  readonly at: string;
  readonly timezone: string;
  readonly days: readonly Weekday[];
  readonly targets?: readonly string[] | undefined;
}

/** A team's digests, which are posted in the team's channel. */
const ofTeam = z.array(section(digest)).default([]);

const digestsOfTeam = (team: object): readonly Omit<DigestRule, "channel">[] =>
  teamSectionOf(team, "digests", ofTeam);

/** The section `digests` of gatehouse.yml. */
export const digestsSection = defineSection({
  name: "digests",
  example: `digests:
  - { channel: C02STATUS, at: "09:00", timezone: Europe/Paris, days: mon-fri }
`,
  schema: digests,
  inTeams: ofTeam,
  nonsenseIn: (_digests, _operations, teams) =>
    Object.entries(teams).flatMap(([name, team]) =>
      team.channel === undefined && digestsOfTeam(team).length > 0
        ? [
            {
              path: ["teams", name, "digests"],
              message: "have no place: add `channel` to the team",
            },
          ]
        : [],
    ),
  channelsIn: (all) => all.map(({ channel: where }) => where),
  counted: (all) => counted(all.length, "digest"),
});

/** Every digest in gatehouse.yml: those of `digests`, and those of each team in its channel. */
export function digestsIn(policy: Pick<Policy, "teams">): readonly DigestRule[] {
  const ofTeams = Object.values(policy.teams).flatMap((team) =>
    digestsOfTeam(team).flatMap((rule) => (team.channel ? { ...rule, channel: team.channel } : [])),
  );
  return [...sectionOf(policy, digestsSection), ...ofTeams];
}
