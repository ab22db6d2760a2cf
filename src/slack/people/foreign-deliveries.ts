import { listAt, textAt } from "../json.ts";
import type { BotIdentity } from "./identity.ts";

/**
 * Why a delivery isn't for this bot: it is another app's, or of another workspace. Undefined when
 * it is for this bot. For an event in a shared channel, `team_id` may be the other company's;
 * `authorizations` names the installation. https://docs.slack.dev/apis/events-api/#authorizations
 */
export function foreignness(body: unknown, identity: BotIdentity): "app" | "team" | undefined {
  const appId = textAt(body, "api_app_id");
  if (identity.appId !== undefined && appId !== "" && appId !== identity.appId) return "app";
  const grants = listAt(body, "authorizations");
  const named = (field: string, ...ofBody: readonly (readonly string[])[]) =>
    grants.length > 0
      ? grants.map((grant) => textAt(grant, field))
      : [[field], ...ofBody].map((path) => textAt(body, ...path));
  const teams = named("team_id", ["team", "id"], ["view", "app_installed_team_id"]);
  if (teams.includes(identity.teamId)) return undefined;
  const enterprises = named("enterprise_id", ["enterprise", "id"], ["team", "enterprise_id"]);
  return identity.enterpriseId && enterprises.includes(identity.enterpriseId) ? undefined : "team";
}
