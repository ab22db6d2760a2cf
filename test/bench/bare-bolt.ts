import bolt from "@slack/bolt";

// The least that a Slack app can do: it acknowledges, over the transport that the environment names. With a Redis to store in, what
// it acknowledges is stored there before, by the one script that a gateway runs.
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
  const { accept } = await import("../../src/slack/receive/intake-scripts.ts");
  const redis = new Redis(url, { keyPrefix: "{bare}:" });
  redis.defineCommand("accept", { lua: accept, numberOfKeys: 5 });
  let count = 0;
  return async (body: { trigger_id: string }): Promise<void> => {
    const { trigger_id: id } = body;
    const stamp = `bare/${(count += 1)}`;
    const keys = [`seen:${id}`, "records", "holders", "gateways", `undone:${stamp}`];
    const args = [stamp, 660_000, id, JSON.stringify(body), "bare", Number.MAX_SAFE_INTEGER];
    await Reflect.apply(Reflect.get(redis, "accept"), redis, [...keys, ...args]);
  };
}

app.command(/.*/, async ({ ack, body }) => {
  await store?.(body);
  await ack();
});
const server = await app.start({ port: 0, host: "127.0.0.1" });
const address = server && "address" in server ? server.address() : undefined;
process.stdout.write(`ready ${typeof address === "object" ? (address?.port ?? 0) : 0}\n`);
