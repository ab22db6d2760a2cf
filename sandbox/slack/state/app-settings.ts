/** The app as its settings page in Slack would show it: what it listens to, where, with which keys and rights. */
export interface AppSettings {
  appId: string;
  botUserId: string;
  botId: string;
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
  /** How long after a failed event delivery it is sent again: Slack tries three times more. */
  eventRetryDelaysMs: number[];
  /** How long an uploaded file is processed before an image block may show it. */
  fileReadyMs: number;
}

export function defaultAppSettings(): AppSettings {
  return {
    appId: "A01GATEHOUSE",
    botUserId: "U0GATEHOUSE",
    botId: "B0GATEHOUSE",
    botName: "gatehouse",
    botToken: "xoxb-sandbox-gatehouse",
    appToken: "xapp-1-sandbox-gatehouse",
    signingSecret: "sandbox-signing-secret",
    requestUrl: undefined,
    scopes: [
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
    commands: [
      {
        name: "/vm",
        description: "Show and run virtual machines",
        usageHint: "list",
        shouldEscape: false,
      },
      {
        name: "/project",
        description: "Show and change projects",
        usageHint: "list",
        shouldEscape: false,
      },
      {
        name: "/gatehouse",
        description: "Help, approvals, jobs",
        usageHint: "help",
        shouldEscape: false,
      },
    ],
    shortcuts: [
      { name: "Restart a VM…", callbackId: "restart-vm", type: "global" },
      { name: "Show the VMs named here", callbackId: "show-vms", type: "message" },
    ],
    events: [
      "app_mention",
      "message.im",
      "app_home_opened",
      "subteam_members_changed",
      "subteam_updated",
    ],
    homeTab: true,
    messagesTabReadOnly: false,
    ackTimeoutMs: 3000,
    eventRetryDelaysMs: [0, 60_000, 300_000],
    fileReadyMs: 0,
  };
}
