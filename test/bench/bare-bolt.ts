import bolt from "@slack/bolt";

// The least that a Slack app can do: it acknowledges, over the transport that the environment names. With a Redis to store in, what
// it acknowledges is stored there before, by the one command that a gateway sends.
const { SLACK_BOT_TOKEN, SLACK_APP_TOKEN, SLACK_SIGNING_SECRET, SLACK_API_URL } = process.env;
const app = new bolt.App({
  token: SLACK_BOT_TOKEN ?? "",
  ...(SLACK_APP_TOKEN ? { appToken: SLACK_APP_TOKEN, socketMode: true } : {}),
  ...(SLACK_SIGNING_SECRET ? { signingSecret: SLACK_SIGNING_SECRET } : {}),
  clientOptions: SLACK_API_URL ? { slackApiUrl: SLACK_API_URL } : {},
  logLevel: bolt.LogLevel.ERROR,
});
const { STORE_IN } = process.env;
const store = STORE_IN === undefined ? undefined : await storing(STORE_IN);

/** Loaded only here: the memory of the one that only acknowledges is measured too. */
async function storing(url: string) {
  const { Redis } = await import("ioredis");
  const redis = new Redis(url);
  return async (body: { trigger_id: string }): Promise<void> => {
    await redis.hsetnx("{bare}:arrived", body.trigger_id, JSON.stringify(body));
  };
}

app.command(/.*/, async ({ ack, body }) => {
  await store?.(body);
  await ack();
});
const server = await app.start({ port: 0, host: "127.0.0.1" });
const address = server && "address" in server ? server.address() : undefined;
process.stdout.write(`ready ${typeof address === "object" ? (address?.port ?? 0) : 0}\n`);
