import { fieldsOf, listOf, textOf, textsOf } from "../fields.ts";

/** The app as its settings page in Slack would show it: what it listens to, where, with which keys and rights. */
export interface AppSettings {
  appId: string;
  /** What people see the app called. */
  appName: string;
  botUserId: string;
  botId: string;
  /** The bot's handle: people write `@botName`. */
  botName: string;
  botToken: string;
  appToken: string;
  signingSecret: string;
  /** Where deliveries are posted to. Without it: Socket Mode. */
  requestUrl: string | undefined;
  scopes: string[];
  commands: { name: string; description: string; usageHint: string; shouldEscape: boolean }[];
  shortcuts: { name: string; callbackId: string; type: "global" | "message" }[];
  /** Event types the app is subscribed to. */
  events: string[];
  homeTab: boolean;
  /** Nobody can write to the app in a direct message. */
  messagesTabReadOnly: boolean;
  /** How long Slack waits for an ack. 3 s, like the original; tests of timeouts may shorten it. */
  ackTimeoutMs: number;
  /** How long a trigger ID works. 3 s, like the original. */
  triggerLifeMs: number;
  /** How long after a failed event delivery it is sent again: Slack tries three times more. */
  eventRetryDelaysMs: number[];
  /** How long an uploaded file is processed before an image block may show it. */
  fileReadyMs: number;
}

/**
 * The settings that an app manifest gives (https://docs.slack.dev/reference/app-manifest), parsed from YAML or JSON. IDs and keys
 * follow from the bot's handle, so they are the same at each start. Without a manifest the app is one that was just created: it has
 * no scopes, commands, shortcuts, events, or Home tab. URLs are not taken from a manifest: `requestUrl` names the one that is local.
 */
export function settingsFromManifest(manifest?: unknown): AppSettings {
  const features = fieldsOf(fieldsOf(manifest)["features"]);
  const home = fieldsOf(features["app_home"]);
  const scopes = fieldsOf(fieldsOf(fieldsOf(manifest)["oauth_config"])["scopes"]);
  const events = fieldsOf(fieldsOf(fieldsOf(manifest)["settings"])["event_subscriptions"]);
  const bot = textOf(fieldsOf(features["bot_user"])["display_name"]);
  const appName = textOf(fieldsOf(fieldsOf(manifest)["display_information"])["name"], bot || "App");
  const botName = (bot || appName).toLowerCase().replaceAll(/[^a-z0-9._-]+/g, "_");
  const capitals = botName.toUpperCase().replaceAll(/[^A-Z0-9]/g, "") || "APP";
  return {
    appId: `A01${capitals}`,
    appName,
    botUserId: `U0${capitals}`,
    botId: `B0${capitals}`,
    botName,
    botToken: `xoxb-sandbox-${botName}`,
    appToken: `xapp-1-sandbox-${botName}`,
    signingSecret: "sandbox-signing-secret",
    requestUrl: undefined,
    scopes: textsOf(scopes["bot"]),
    commands: listOf(features["slash_commands"]).map((command) => ({
      name: textOf(command["command"]),
      description: textOf(command["description"]),
      usageHint: textOf(command["usage_hint"]),
      shouldEscape: command["should_escape"] === true,
    })),
    shortcuts: listOf(features["shortcuts"]).map((shortcut) => ({
      name: textOf(shortcut["name"]),
      callbackId: textOf(shortcut["callback_id"]),
      type: shortcut["type"] === "message" ? "message" : "global",
    })),
    events: textsOf(events["bot_events"]),
    homeTab: home["home_tab_enabled"] === true,
    messagesTabReadOnly:
      home["messages_tab_read_only_enabled"] === true || home["messages_tab_enabled"] === false,
    ackTimeoutMs: 3000,
    triggerLifeMs: 3000,
    eventRetryDelaysMs: [0, 60_000, 300_000],
    fileReadyMs: 0,
  };
}
