import type { Fields } from "../fields.ts";
import type { Group, Person, Role } from "./records.ts";
import type { Workspace } from "./workspace.ts";

/** Adds or replaces a person. The id begins with U or W, as Slack's do. */
export function addPerson(
  workspace: Workspace,
  spec: {
    id: string;
    name: string;
    realName?: string;
    role?: Role;
    teamId?: string;
    email?: string;
    botId?: string;
    enterprise?: Person["enterprise"];
  },
): Person {
  if (!/^[UW][A-Z0-9]+$/.test(spec.id)) throw new Error(`${spec.id} isn't a Slack user id`);
  const person: Person = {
    id: spec.id,
    name: spec.name,
    realName: spec.realName ?? spec.name,
    role: spec.role ?? "member",
    teamId: spec.teamId ?? workspace.team.id,
    active: true,
    email: spec.email ?? `${spec.name}@${workspace.team.domain}.example`,
    timezone: "Europe/Paris",
    ...(spec.botId ? { botId: spec.botId } : {}),
    ...(spec.enterprise ? { enterprise: spec.enterprise } : {}),
  };
  workspace.people.set(person.id, person);
  workspace.changed();
  return person;
}

/** The app's bot, as one of the people. */
export function addBot(workspace: Workspace): Person {
  const { botUserId: id, botName: name, appName: realName, botId } = workspace.app;
  return addPerson(workspace, { id, name, realName, role: "bot", botId });
}

/** By id or handle, with or without @. Throws when there is nobody. */
export function personOf(workspace: Workspace, idOrName: string): Person {
  const name = idOrName.replace(/^@/, "");
  const found =
    workspace.people.get(name) ??
    [...workspace.people.values()].find((person) => person.name === name.toLowerCase());
  if (!found) {
    const known = [...workspace.people.values()].map((person) => person.name).join(", ");
    throw new Error(`Nobody here is called ${idOrName}. There are ${known}.`);
  }
  return found;
}

export function isHuman(person: Person): boolean {
  return person.role !== "bot";
}

/** A user object as users.info gives it. https://docs.slack.dev/reference/objects/user-object */
export function userObject(workspace: Workspace, person: Person, withEmail: boolean): Fields {
  const guest = person.role === "guest";
  return {
    id: person.id,
    team_id: person.teamId,
    name: person.name,
    deleted: !person.active,
    real_name: person.realName,
    tz: person.timezone,
    tz_label: "Central European Time",
    tz_offset: 3600,
    profile: {
      real_name: person.realName,
      display_name: person.name,
      real_name_normalized: person.realName,
      display_name_normalized: person.name,
      team: person.teamId,
      ...(withEmail ? { email: person.email } : {}),
      ...(person.botId ? { bot_id: person.botId, api_app_id: workspace.app.appId } : {}),
    },
    ...(person.enterprise
      ? {
          enterprise_user: {
            id: person.id,
            enterprise_id: person.enterprise.id,
            enterprise_name: person.enterprise.id,
            is_admin: false,
            is_owner: false,
            teams: [...person.enterprise.teamIds],
          },
        }
      : {}),
    is_bot: person.role === "bot",
    is_app_user: false,
    updated: 0,
    // Slack leaves these out for deactivated people and for strangers.
    ...(person.active && person.role !== "stranger"
      ? {
          is_admin: person.role === "admin" || person.role === "owner",
          is_owner: person.role === "owner",
          is_primary_owner: person.role === "owner",
          is_restricted: guest,
          is_ultra_restricted: guest,
        }
      : {}),
    ...(person.role === "stranger" ? { is_stranger: true } : {}),
  };
}

/** A user group as usergroups.list gives it. */
export function groupObject(
  workspace: Workspace,
  group: Group,
  include: { users: boolean; count: boolean },
): Fields {
  const owner = [...workspace.people.values()].find(({ role }) => role === "owner");
  return {
    id: group.id,
    team_id: workspace.team.id,
    is_usergroup: true,
    is_subteam: true,
    name: group.name,
    description: "",
    handle: group.handle,
    is_external: false,
    date_create: Math.floor(group.createdAt / 1000),
    date_update: Math.floor(group.updatedAt / 1000),
    date_delete: group.active ? 0 : Math.floor(group.updatedAt / 1000),
    auto_type: null,
    auto_provision: false,
    enterprise_subteam_id: "",
    created_by: owner?.id ?? "USLACKBOT",
    updated_by: owner?.id ?? "USLACKBOT",
    deleted_by: null,
    prefs: { channels: [], groups: [] },
    ...(include.users ? { users: group.userIds } : {}),
    ...(include.count ? { user_count: group.userIds.length } : {}),
  };
}

export function addGroup(
  workspace: Workspace,
  id: string,
  handle: string,
  name: string,
  userIds: readonly string[],
): void {
  if (!/^S[A-Z0-9]+$/.test(id)) throw new Error(`${id} isn't a Slack user group id`);
  const now = workspace.now();
  workspace.groups.set(id, {
    id,
    handle,
    name,
    userIds: [...userIds],
    active: true,
    createdAt: now,
    updatedAt: now,
  });
  workspace.changed();
}
