import {
  type SandboxSlack,
  type SandboxSlackOptions,
  startSandboxSlack,
} from "../../../sandbox/slack/index.ts";

/** An app that may do all that the sandbox Slack knows. */
const manifest = {
  display_information: { name: "Gatehouse" },
  features: {
    app_home: { home_tab_enabled: true },
    bot_user: { display_name: "gatehouse" },
    slash_commands: [
      { command: "/vm", description: "Show and run virtual machines", usage_hint: "list" },
      { command: "/project", description: "Show and change projects", usage_hint: "list" },
      { command: "/gatehouse", description: "Help, approvals, jobs", usage_hint: "help" },
    ],
    shortcuts: [
      { name: "Restart a VM…", callback_id: "restart-vm", type: "global" },
      { name: "Show the VMs named here", callback_id: "show-vms", type: "message" },
    ],
  },
  oauth_config: {
    scopes: {
      bot: [
        "app_mentions:read",
        "channels:history",
        "channels:join",
        "channels:read",
        "chat:write",
        "commands",
        "files:read",
        "files:write",
        "groups:history",
        "groups:read",
        "im:history",
        "im:read",
        "im:write",
        "metadata.message:read",
        "mpim:history",
        "usergroups:read",
        "users:read",
      ],
    },
  },
  settings: {
    event_subscriptions: {
      bot_events: [
        "app_mention",
        "message.im",
        "app_home_opened",
        "subteam_members_changed",
        "subteam_updated",
      ],
    },
  },
};

/** It waits longer for acks than a slow machine needs. */
export const startSlack = (options: SandboxSlackOptions = {}): Promise<SandboxSlack> =>
  startSandboxSlack({
    manifest,
    ...options,
    app: { ackTimeoutMs: 90_000, triggerLifeMs: 90_000, ...options.app },
  });
