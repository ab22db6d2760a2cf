import bolt from "@slack/bolt";

// The least that a Slack app can do: it acknowledges, over the transport that the environment names.
const { SLACK_BOT_TOKEN, SLACK_APP_TOKEN, SLACK_SIGNING_SECRET, SLACK_API_URL } = process.env;
const app = new bolt.App({
  token: SLACK_BOT_TOKEN ?? "",
  ...(SLACK_APP_TOKEN ? { appToken: SLACK_APP_TOKEN, socketMode: true } : {}),
  ...(SLACK_SIGNING_SECRET ? { signingSecret: SLACK_SIGNING_SECRET } : {}),
  clientOptions: SLACK_API_URL ? { slackApiUrl: SLACK_API_URL } : {},
  logLevel: bolt.LogLevel.ERROR,
});
app.command(/.*/, ({ ack }) => ack());
const server = await app.start({ port: 0, host: "127.0.0.1" });
const address = server && "address" in server ? server.address() : undefined;
process.stdout.write(`ready ${typeof address === "object" ? (address?.port ?? 0) : 0}\n`);
