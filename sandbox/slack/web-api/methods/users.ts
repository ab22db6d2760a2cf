import { groupObject, userObject } from "../../state/people.ts";
import { type Call, type Method, page, Refused } from "./method.ts";
import { randomBytes } from "node:crypto";

const read = { scopes: ["users:read"], token: "bot" } as const;
const groups = { scopes: ["usergroups:read"], token: "bot" } as const;
const withEmail = (call: Call) => call.workspace.app.scopes.includes("users:read.email");

export const users: Record<string, Method> = {
  "auth.test": {
    scopes: [],
    token: "bot",
    run: ({ workspace }) => ({
      url: `https://${workspace.team.domain}.slack.com/`,
      team: workspace.team.name,
      user: workspace.app.botName,
      team_id: workspace.team.id,
      user_id: workspace.app.botUserId,
      bot_id: workspace.app.botId,
      ...(workspace.team.enterpriseId ? { enterprise_id: workspace.team.enterpriseId } : {}),
      is_enterprise_install: false,
    }),
  },

  "apps.connections.open": {
    scopes: [],
    token: "app",
    run: ({ workspace }) => {
      const ticket = randomBytes(18).toString("base64url");
      workspace.socketTickets.add(ticket);
      const address = `${workspace.url.replace(/^http/, "ws")}/link/`;
      return { url: `${address}?ticket=${ticket}&app_id=${workspace.app.appId}` };
    },
  },

  "users.info": {
    ...read,
    run: (call) => ({ user: userObject(call.workspace, call.person(), withEmail(call)) }),
  },

  "users.list": {
    ...read,
    run: (call) => {
      const { items, next_cursor } = page(
        call,
        [...call.workspace.people.values()],
        call.number("limit", 1000, 1000),
      );
      return {
        members: items.map((person) => userObject(call.workspace, person, withEmail(call))),
        cache_ts: Math.floor(call.workspace.now() / 1000),
        response_metadata: { next_cursor },
      };
    },
  },

  "usergroups.list": {
    ...groups,
    run: (call) => {
      const include = { users: call.flag("include_users"), count: call.flag("include_count") };
      const shown = [...call.workspace.groups.values()].filter(
        (group) => group.active || call.flag("include_disabled"),
      );
      return { usergroups: shown.map((group) => groupObject(call.workspace, group, include)) };
    },
  },

  "usergroups.users.list": {
    ...groups,
    run: (call) => {
      call.required("usergroup");
      const group = call.workspace.groups.get(call.text("usergroup"));
      if (!group) throw new Refused("no_such_subteam");
      if (!group.active && !call.flag("include_disabled")) throw new Refused("no_such_subteam");
      return { users: [...group.userIds] };
    },
  },

  "bots.info": {
    ...read,
    run: (call) => {
      const { app } = call.workspace;
      if (call.text("bot") !== app.botId) throw new Refused("bot_not_found");
      return {
        bot: {
          id: app.botId,
          deleted: false,
          name: app.botName,
          updated: 0,
          app_id: app.appId,
          user_id: app.botUserId,
          icons: {},
        },
      };
    },
  },
};
