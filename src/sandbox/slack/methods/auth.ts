import { issueTicket } from "../socket-tickets.ts";
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
    run: ({ workspace }) => ({
      url: `${workspace.url.replace(/^http/, "ws")}/link/?ticket=${issueTicket(workspace)}&app_id=${workspace.app.appId}`,
    }),
  },
};
