import bolt from "@slack/bolt";

// The least that a Slack app can do: it acknowledges, over the transport that the environment names. With a Redis to store in, the
// least that keeps a promise: each delivery is a job of BullMQ before its acknowledgment, and answered after it. In JavaScript, as
// most apps run: Node keeps what it needs to strip types.
const { SLACK_BOT_TOKEN, SLACK_APP_TOKEN, SLACK_SIGNING_SECRET, SLACK_API_URL } = process.env;
const app = new bolt.App({
  token: SLACK_BOT_TOKEN ?? "",
  ...(SLACK_APP_TOKEN ? { appToken: SLACK_APP_TOKEN, socketMode: true } : {}),
  ...(SLACK_SIGNING_SECRET ? { signingSecret: SLACK_SIGNING_SECRET } : {}),
  clientOptions: SLACK_API_URL ? { slackApiUrl: SLACK_API_URL } : {},
  logLevel: bolt.LogLevel.ERROR,
});
const { STORE_IN, ANSWER = "{}" } = process.env;
const queue = STORE_IN === undefined ? undefined : await queueIn(STORE_IN);

/**
 * Loaded only here: the memory of the one that only acknowledges is measured.
 *
 * @param {string} url
 */
async function queueIn(url) {
  const [{ Queue }, { Redis }] = await Promise.all([import("bullmq"), import("ioredis")]);
  return new Queue("bare", { connection: new Redis(url, { maxRetriesPerRequest: null }) });
}

app.command(/.*/, async ({ ack, body, respond }) => {
  await queue?.add("command", body);
  await ack();
  if (queue) await respond(JSON.parse(ANSWER));
});
const server = await app.start({ port: 0, host: "127.0.0.1" });
const address = server && "address" in server ? server.address() : undefined;
process.stdout.write(`ready ${typeof address === "object" ? (address?.port ?? 0) : 0}\n`);
