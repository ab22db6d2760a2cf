import type { Person } from "../registry/person.ts";
import { at, listAt, textAt } from "./payload.ts";

export interface Home {
  teamId: string;
  enterpriseId?: string | undefined;
}

/**
 * What Slack's user object makes of somebody (https://docs.slack.dev/reference/objects/user-object). Only what passes
 * every line is a member. `saidTeamId` is the team the delivery named: it must not contradict the user object.
 * `is_app_user` is no sign of a bot: it says that a human has authorised the app.
 */
export function kindOfUser(user: unknown, saidTeamId: string, home: Home): Person["kind"] {
  const is = (name: string) => at(user, name) === true;
  if (is("deleted") || is("is_forgotten")) return "deactivated";
  if (
    textAt(user, "id") === "USLACKBOT" ||
    is("is_bot") ||
    is("is_workflow_bot") ||
    is("is_connector_bot")
  )
    return "bot";
  if (textAt(user, "profile", "bot_id") !== "" || textAt(user, "profile", "api_app_id") !== "")
    return "bot";
  if (is("is_stranger") || is("is_external") || !isOfHome(user, saidTeamId, home))
    return "external";
  // Invited and never signed in: nobody to hold responsible yet.
  if (is("is_restricted") || is("is_ultra_restricted") || is("is_invited_user")) return "guest";
  return "member";
}

function isOfHome(user: unknown, saidTeamId: string, home: Home): boolean {
  const teamId = textAt(user, "team_id") || saidTeamId;
  const sameEnterprise =
    home.enterpriseId !== undefined &&
    textAt(user, "enterprise_user", "enterprise_id") === home.enterpriseId;
  // On Enterprise Grid people have a team of their own and belong to several.
  const belongs =
    teamId === home.teamId ||
    (sameEnterprise && listAt(user, "enterprise_user", "teams").includes(home.teamId));
  const agrees = saidTeamId === "" || saidTeamId === home.teamId || sameEnterprise;
  return belongs && agrees;
}

/** For reading only, never for deciding. */
export function nameOfUser(user: unknown): string {
  return (
    textAt(user, "profile", "display_name") ||
    textAt(user, "profile", "real_name") ||
    textAt(user, "real_name") ||
    textAt(user, "name") ||
    textAt(user, "id")
  );
}
