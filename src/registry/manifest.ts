import { stringify } from "yaml";
import type { Command } from "./define.ts";
import { usageOf } from "./usage.ts";

/** Global and message shortcuts, by the callback ids that `slack/` listens to. */
export const shortcuts = [
  {
    name: "Restart a VM…",
    type: "global",
    callback_id: "restart-vm",
    description: "Choose a VM by typing, and restart it",
  },
  {
    name: "Show the VMs named here",
    type: "message",
    callback_id: "show-vms",
    description: "Looks up the VMs that this message names",
  },
] as const;

/**
 * Rights in Slack, the fewest that the promises need: history and its metadata because a message whose post was not
 * answered is looked up before it is posted again.
 */
export const botScopes = [
  "app_mentions:read",
  "channels:history",
  "chat:write",
  "commands",
  "files:write",
  "groups:history",
  "im:history",
  "im:write",
  "metadata.message:read",
  "mpim:history",
  "usergroups:read",
  "users:read",
] as const;

export const botEvents = [
  "app_home_opened",
  "app_mention",
  "subteam_members_changed",
  "subteam_updated",
] as const;

const descriptions: Readonly<Record<string, string>> = {
  vm: "Show, start, stop, restart, resize, snapshot and restore confidential VMs",
  project: "Show, create, update and delete projects",
  gatehouse: "Help, approvals, what runs, the audit trail, freeze",
};

/** The Slack app, computed from the commands: https://docs.slack.dev/reference/app-manifest */
export function manifestOf(commands: readonly Command[]): Record<string, unknown> {
  const roots = [...new Set(commands.map(({ name }) => name.split(" ")[0] ?? ""))];
  return {
    _metadata: { major_version: 2 },
    display_information: {
      name: "Gatehouse",
      description: "Run confidential virtual machines and projects from Slack, safely.",
      background_color: "#1f2a37",
    },
    features: {
      app_home: {
        home_tab_enabled: true,
        messages_tab_enabled: true,
        messages_tab_read_only_enabled: true,
      },
      bot_user: { display_name: "gatehouse", always_online: true },
      shortcuts: shortcuts.map((shortcut) => ({ ...shortcut })),
      slash_commands: roots.map((root) => ({
        command: `/${root}`,
        description: descriptions[root] ?? `Commands about ${root}`,
        usage_hint: hintOf(commands.filter(({ name }) => name.startsWith(`${root} `))),
        should_escape: false,
      })),
    },
    oauth_config: { scopes: { bot: [...botScopes] } },
    settings: {
      event_subscriptions: { bot_events: [...botEvents] },
      interactivity: { is_enabled: true },
      org_deploy_enabled: false,
      socket_mode_enabled: true,
      token_rotation_enabled: false,
    },
  };
}

/** `list · show <vm> · restart <vm…>`, at most 1,000 characters. */
function hintOf(commands: readonly Command[]): string {
  const words = commands.map((command) => usageOf(command).split(" ").slice(1).join(" "));
  let hint = "";
  for (const word of words) {
    const longer = hint === "" ? word : `${hint} · ${word}`;
    if (longer.length > 900) break;
    hint = longer;
  }
  return hint;
}

export function renderManifest(commands: readonly Command[]): string {
  return `# Made from src/commands by "npm run derive". Paste it into Slack: Create New App, From a manifest.\n${stringify(manifestOf(commands), { lineWidth: 0 })}`;
}
