import { stringify } from "yaml";
import { usageOf, type Command, type CommandClass, type Shortcut } from "../src/registry/define.ts";
import { botScopes } from "../src/operate/checks/slack.ts";

export const botEvents = [
  "app_home_opened",
  "app_mention",
  "message.im",
  "subteam_members_changed",
  "subteam_updated",
] as const;

const descriptions: Readonly<Record<string, string>> = {
  vm: "Show, start, stop, restart, resize, snapshot, and restore confidential VMs",
  project: "Show, create, update, and delete projects",
  gatehouse: "Help, approvals, running requests, audit trail, freeze",
};

interface Has {
  /** A feature shows the Home tab. */
  hasHome?: boolean;
}

const shortcutOf = ({ name, type, callback, description }: Shortcut) => ({
  name,
  type,
  callback_id: callback,
  description,
});

/** The Slack app, computed from the commands: https://docs.slack.dev/reference/app-manifest */
export function manifestOf(
  commands: readonly Command[],
  { hasHome = true }: Has = {},
): Record<string, unknown> {
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
        home_tab_enabled: hasHome,
        messages_tab_enabled: true,
        messages_tab_read_only_enabled: false,
      },
      bot_user: { display_name: "gatehouse", always_online: true },
      shortcuts: commands.flatMap(({ shortcut }) => (shortcut ? [shortcutOf(shortcut)] : [])),
      slash_commands: roots.map((root) => ({
        command: `/${root}`,
        description: descriptions[root] ?? `Commands about ${root}`,
        usage_hint: hintOf(commands.filter(({ name }) => name.startsWith(`${root} `))),
        should_escape: false,
      })),
    },
    oauth_config: { scopes: { bot: [...botScopes] } },
    settings: {
      event_subscriptions: {
        bot_events: botEvents.filter((event) => hasHome || event !== "app_home_opened"),
      },
      interactivity: { is_enabled: true },
      org_deploy_enabled: false,
      socket_mode_enabled: true,
      token_rotation_enabled: false,
    },
  };
}

/** `list · show <vm> · restart <vm…>`, within Slack's 1,000 characters. */
function hintOf(commands: readonly Command[]): string {
  const words = commands.map((command) => usageOf(command).replace(/^\S+ /, ""));
  while (words.join(" · ").length > 900) words.pop();
  return words.join(" · ");
}

/** https://docs.slack.dev/ai/slackbot-mcp-client */
const forSlackbot = {
  mcp_servers: {
    gatehouse: { url: "https://gatehouse.example/mcp", auth_type: "slack_identity_auth" },
  },
};

export function renderManifest(commands: readonly Command[], has: Has = {}): string {
  const manifest = stringify(manifestOf(commands, has), { lineWidth: 0 });
  return [
    `# Made from src/commands by "npm run derive". Paste it into Slack: Create New App, From a manifest.\n${manifest}`,
    "# Optional: people ask Slackbot, which reads and proposes through API_PORT with their rights (docs/automation.md).",
    "# Needs Slack's Business+ or an Enterprise plan, a public HTTPS address, and SLACK_SIGNING_SECRET.",
    "# Add the scope mcp:connect under bot, and without the number signs:",
    ...stringify(forSlackbot)
      .trimEnd()
      .split("\n")
      .map((line) => `# ${line}`),
    "",
  ].join("\n");
}

const needs: Readonly<Record<CommandClass, string>> = {
  read: "view",
  change: "operate",
  disrupt: "operate",
  destroy: "operate, the typed name, approvals",
  secret: "operate; shown only to you",
  administer: "administer",
};

const start = "<!-- commands: made from src/commands by npm run derive -->";
const end = "<!-- /commands -->";

export function renderTable(commands: readonly Command[]): string {
  const rows = commands.map((command) => {
    const usage = usageOf(command).replaceAll("|", String.raw`\|`);
    const isForApprovers = command.kind === "read" && command.approversToo === true;
    const who = isForApprovers ? `${needs[command.class]} or approve` : needs[command.class];
    return `| \`${usage}\` | ${command.summary} | ${who} |`;
  });
  return ["| Command | What it does | Who |", "| --- | --- | --- |", ...rows].join("\n");
}

/** README with a new table. Throws when the markers are missing. */
export function withTable(readme: string, commands: readonly Command[]): string {
  const from = readme.indexOf(start);
  const to = readme.indexOf(end);
  if (from < 0 || to < from) throw new Error(`README.md lacks "${start}" … "${end}"`);
  return `${readme.slice(0, from + start.length)}\n\n${renderTable(commands)}\n\n${readme.slice(to)}`;
}
