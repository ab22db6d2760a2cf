import * as z from "zod";
import {
  channel,
  days,
  glob,
  section,
  teamName,
  teamProject,
  timeOfDay,
  timezone,
  who,
} from "./policy-values.ts";

const people = z.array(who).default([]);

/**
 * `teams` in gatehouse.yml: who may do what with the projects of a team. `access` is for what no team has; its
 * administrators are for everybody. Whoever may operate, approve, or break glass for a team sees it too.
 */
export const teamsSection = z
  .record(
    teamName,
    section({
      /** Project IDs, names, or globs over names. A VM belongs to its project's team. */
      projects: z.array(teamProject).min(1, "must name at least one project"),
      view: people,
      operate: people,
      approve: people,
      breakGlass: people,
      /** Where the team's approvals, alerts, unknown outcomes, and recaps go when they arise elsewhere. */
      channel: channel.optional(),
      /** Posted in the team's channel. */
      digests: z
        .array(
          section({
            at: timeOfDay,
            timezone: timezone.default("UTC"),
            days: days.prefault("daily"),
            /** Globs over VM and project names: it speaks of these alone. */
            targets: z.array(glob).min(1, "must name at least one VM or project").optional(),
          }),
        )
        .default([]),
    }).refine(({ channel: where, digests }) => where !== undefined || digests.length === 0, {
      path: ["digests"],
      error: "have no place: add `channel` to the team",
    }),
  )
  .default({});
