import { randomBytes } from "node:crypto";
import type { Method } from "./method.ts";

export const auth: Record<string, Method> = {
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
};
