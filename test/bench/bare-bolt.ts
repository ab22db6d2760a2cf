import bolt from "@slack/bolt";

// The least that a Slack app can do: it acknowledges, over the transport that the environment names. With a Redis to store in, the
// least that keeps a promise: each delivery is stored there before its ack, answered once after it, and then marked done.
const { SLACK_BOT_TOKEN, SLACK_APP_TOKEN, SLACK_SIGNING_SECRET, SLACK_API_URL } = process.env;
const app = new bolt.App({
  token: SLACK_BOT_TOKEN ?? "",
  ...(SLACK_APP_TOKEN ? { appToken: SLACK_APP_TOKEN, socketMode: true } : {}),
  ...(SLACK_SIGNING_SECRET ? { signingSecret: SLACK_SIGNING_SECRET } : {}),
  clientOptions: SLACK_API_URL ? { slackApiUrl: SLACK_API_URL } : {},
  logLevel: bolt.LogLevel.ERROR,
});
const { STORE_IN } = process.env;
const store = STORE_IN === undefined ? undefined : await storeIn(STORE_IN);

/** Loaded only here: the memory of the one that only acknowledges is measured too. */
async function storeIn(url: string) {
  const { Redis } = await import("ioredis");
  const redis = new Redis(url);
  const key = "{bare}:arrived";
  return {
    keep: (id: string, body: object) => redis.hsetnx(key, id, JSON.stringify(body)),
    done: (id: string) => redis.hset(key, id, "done"),
  };
}

app.command(/.*/, async ({ ack, body, respond }) => {
  const isFirst = await store?.keep(body.trigger_id, body);
  await ack();
  if (store === undefined || isFirst === 0) return;
  await respond("Done.");
  await store.done(body.trigger_id);
});
const server = await app.start({ port: 0, host: "127.0.0.1" });
const address = server && "address" in server ? server.address() : undefined;
process.stdout.write(`ready ${typeof address === "object" ? (address?.port ?? 0) : 0}\n`);
