import type { Person } from "../../registry/invocation.ts";
import { at, listAt, textAt } from "../json.ts";
import type { BotIdentity } from "./identity.ts";

export type Home = Pick<BotIdentity, "teamId" | "enterpriseId">;

/**
 * The kind of person, from Slack's user object
 * (https://docs.slack.dev/reference/objects/user-object). Only a user who passes every check is a
 * member. `saidTeamId`, the team of the delivery, must not contradict it. `is_app_user` isn't a
 * sign of a bot: it says that a human authorized the app.
 */
export function kindOfUser(user: unknown, saidTeamId: string, home: Home): Person["kind"] {
  const hasFlag = (name: string) => at(user, name) === true;
  if (hasFlag("deleted") || hasFlag("is_forgotten")) return "deactivated";
  if (textAt(user, "id") === "USLACKBOT") return "bot";
  if (["is_bot", "is_workflow_bot", "is_connector_bot"].some(hasFlag)) return "bot";
  if (textAt(user, "profile", "bot_id") !== "" || textAt(user, "profile", "api_app_id") !== "")
    return "bot";
  if (hasFlag("is_stranger") || hasFlag("is_external") || !isOfHome(user, saidTeamId, home))
    return "external";
  // Someone who was invited but never signed in can't be held responsible yet.
  if (hasFlag("is_restricted") || hasFlag("is_ultra_restricted") || hasFlag("is_invited_user"))
    return "guest";
  return "member";
}

/**
 * Whether users.info says that the person belongs to our workspace. On Enterprise Grid, people have
 * a workspace of their own and belong to several (`enterprise_user.teams`), any of which a delivery
 * may name.
 */
export function isOfHome(user: unknown, saidTeamId: string, home: Home): boolean {
  const enterpriseId = textAt(user, "enterprise_user", "enterprise_id");
  const isSameEnterprise =
    enterpriseId !== "" && enterpriseId === (home.enterpriseId ?? enterpriseId);
  const isOnGrid =
    isSameEnterprise && listAt(user, "enterprise_user", "teams").includes(home.teamId);
  const teamId = textAt(user, "team_id") || saidTeamId;
  if (saidTeamId === "" || saidTeamId === home.teamId) return teamId === home.teamId || isOnGrid;
  return isOnGrid;
}

/** For display only. */
export function nameOfUser(user: unknown): string {
  return (
    textAt(user, "profile", "display_name") ||
    textAt(user, "profile", "real_name") ||
    textAt(user, "real_name") ||
    textAt(user, "name") ||
    textAt(user, "id")
  );
}

/** The address as its mailbox receives it: case and `+tag` don't matter. */
export function emailOfUser(user: unknown): string {
  return textAt(user, "profile", "email")
    .trim()
    .toLowerCase()
    .replace(/\+[^@]*@/, "@");
}

/**
 * The runtime's name for each time zone that it knows, by Slack's name. There are some hundreds,
 * and finding one takes longer than reading the rest of a user.
 */
const knownZones = new Map<string, string>();

/** Undefined where Slack names none that this runtime knows. */
export function zoneOfUser(user: unknown): string | undefined {
  const zone = textAt(user, "tz");
  if (zone === "") return undefined;
  try {
    return knownZones.getOrInsertComputed(
      zone,
      () => new Intl.DateTimeFormat("en-US", { timeZone: zone }).resolvedOptions().timeZone,
    );
  } catch {
    return undefined;
  }
}
