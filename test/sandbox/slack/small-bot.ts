import type { WebClient } from "@slack/web-api";
import { App, HTTPReceiver, LogLevel, SocketModeReceiver } from "@slack/bolt";
import type { SandboxSlack } from "../../../sandbox/slack/sandbox-slack.ts";
import { startSlack } from "./start-slack.ts";

const quiet = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  setLevel: () => {},
  getLevel: () => LogLevel.ERROR,
  setName: () => {},
};

export type Transport = "http" | "socket";

/** A Bolt app connected to the sandbox; `listen` adds its listeners before it starts. */
export async function startSmallBot(
  slack: SandboxSlack,
  transport: Transport,
  listen: (app: App) => void,
): Promise<AsyncDisposable> {
  const slackApiUrl = slack.apiUrl;
  const receiver =
    transport === "http"
      ? new HTTPReceiver({ signingSecret: slack.app.signingSecret, logger: quiet })
      : new SocketModeReceiver({
          appToken: slack.app.appToken,
          logger: quiet,
          // Its own object: the receiver writes its retry settings into it.
          installerOptions: { clientOptions: { slackApiUrl } },
        });
  const app = new App({
    token: slack.app.botToken,
    receiver,
    logger: quiet,
    convoStore: false,
    botId: slack.app.botId,
    botUserId: slack.app.botUserId,
    clientOptions: { slackApiUrl, retryConfig: { retries: 0 }, rejectRateLimitedCalls: true },
  });
  app.error(async () => {});
  listen(app);
  if (transport === "http") {
    const server = await app.start({ port: 0, host: "127.0.0.1" });
    const address = "address" in server ? server.address() : null;
    if (address === null || typeof address === "string") throw new Error("no port");
    slack.app.requestUrl = `http://127.0.0.1:${address.port}/slack/events`;
  } else {
    await app.start();
    await slack.connected();
  }
  return {
    [Symbol.asyncDispose]: async () => {
      await app.stop();
    },
  };
}

export const button = (text: string, action_id: string, more = {}) => ({
  type: "button" as const,
  text: { type: "plain_text" as const, text },
  action_id,
  ...more,
});
export const words = (text: string) => ({ type: "plain_text" as const, text });

export async function post(
  client: WebClient,
  args: Record<string, unknown>,
): Promise<{ ts?: string }> {
  const result = await client.apiCall("chat.postMessage", args);
  return "ts" in result && typeof result.ts === "string" ? { ts: result.ts } : {};
}

/** A sandbox Slack with a Bolt app in it. */
export async function startBoltWorld(
  transport: Transport,
  listen: Parameters<typeof startSmallBot>[2],
) {
  const slack = await startSlack({ rateLimits: "off" });
  const bot = await startSmallBot(slack, transport, listen);
  return {
    slack,
    olivia: slack.person("olivia"),
    amir: slack.person("amir"),
    [Symbol.asyncDispose]: async () => {
      await bot[Symbol.asyncDispose]();
      await slack.close();
    },
  };
}
