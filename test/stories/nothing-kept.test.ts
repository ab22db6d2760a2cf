import { describe, expect, it } from "vitest";
import { describeSeen } from "../../sandbox/slack/describe-seen.ts";
import { startWorld, testPolicy, type TestWorld } from "../support/start-world.ts";
import { hears } from "./words.ts";
import { until } from "../support/until.ts";

/** Everything that Redis holds of this world, as text: keys, and the bytes of each value. */
async function everythingIn({ client, key }: TestWorld): Promise<Map<string, string>> {
  const held = new Map<string, string>();
  for (const name of await client.keys(`*${key.namespace}*`)) {
    const type = await client.type(name);
    const values = await readAll(client, name, type);
    held.set(name, `${name} ${JSON.stringify(values)}`);
  }
  return held;
}

/** Read as what it is: a dump of it may be compressed, and then nothing is found in it. */
async function readAll(client: TestWorld["client"], name: string, type: string): Promise<unknown> {
  switch (type) {
    case "string":
      return client.get(name);
    case "hash":
      return client.hgetall(name);
    case "list":
      return client.lrange(name, 0, -1);
    case "set":
      return client.smembers(name);
    case "zset":
      return client.zrange(name, 0, "-1");
    case "stream":
      return client.xrange(name, "-", "+");
    default:
      return undefined;
  }
}

/** Names of what holds one of these. */
const holding = (held: ReadonlyMap<string, string>, secrets: readonly string[]): string[] =>
  [...held].flatMap(([name, text]) =>
    secrets.filter((one) => text.includes(one)).map((one) => `${name}: ${one}`),
  );

describe("after a day's work", () => {
  it("Redis and the log hold no token, no key, no response URL, no trigger, no console address and no page of the service", async () => {
    const boom = "xoxb-1234567890-thrown-in-a-worker";
    let isThrown = false;
    await using world = await startWorld({
      receive: "http",
      policy: `${testPolicy}approvals: [{ operations: ["vm.stop"], required: 1 }]\n`,
      pace: { sweepMs: 500 },
      compute: { consoleMs: 60_000 },
      at: async (point) => {
        if (point !== "gate" || isThrown) return;
        isThrown = true;
        throw new Error(`the library says: Authorization: Bearer ${boom}`);
      },
    });
    await world.olivia.types("ops", "/vm restart web-2");
    await hears(world.olivia, "ops", /Restarted web-2 in/);
    expect(isThrown).toBe(true);
    await world.olivia.types("ops", "/vm stop web-2");
    const card = await hears(world.amir, "ops", /Waiting for approval/);
    await world.amir.presses("Approve", { in: card.ts });
    await hears(world.olivia, "ops", /Stopped web-2 in/);
    await world.olivia.types("ops", "/project delete ml");
    await world.olivia.until(({ modals }) => modals.some(({ submit }) => submit !== ""));
    await world.olivia.submits({ "Type ml to confirm": "ml", Reason: "over and done" });
    await hears(world.amir, "ops", /Delete ml[^]*Waiting for approval/);
    await world.olivia.types("ops", "/vm console db-1");
    await world.olivia.until((seen) => describeSeen(seen).includes("[Open console]"));
    await world.olivia.presses("Open console");
    const open = await world.olivia.until((seen) => describeSeen(seen).includes("wss://"));
    const consoleToken = /wss:\/\/\S+?token=([\w-]+)/.exec(describeSeen(open))?.[1] ?? "";
    expect(consoleToken).not.toBe("");
    const page = "PAGE-OF-THE-PROXY";
    world.compute.weather({
      match: "POST /v1/vms/vm-staging-worker-1/start",
      status: 502,
      errorShape: "html",
      message: page,
      times: 1,
    });
    await world.olivia.types("ops", "/vm start worker-1");
    const started = async () =>
      (await world.store.getMany(await world.store.recentIds({}, 10))).find(
        ({ record }) => record.command === "vm start",
      );
    await until(async () => (await started())?.state).toBe("unclear");
    await hears(world.olivia, "ops", /worker-1/);

    const deliveries = world.slack.deliveries().map(({ payload }) => payload);
    const texts = (name: string) =>
      deliveries.map((payload) => payload[name]).filter((one) => typeof one === "string");
    const [urls, triggers] = [texts("response_url"), texts("trigger_id")];
    expect(urls.length).toBeGreaterThan(3);
    expect(triggers.length).toBeGreaterThan(3);
    const { app } = world.slack;
    const secrets = [
      app.botToken,
      app.signingSecret,
      app.appToken,
      world.compute.apiKey,
      boom,
      consoleToken,
      page,
      ...triggers,
      ...urls.map((url) => new URL(url).pathname),
    ];
    const held = await everythingIn(world);
    expect(held.size).toBeGreaterThan(20);
    expect(holding(held, secrets)).toEqual([]);
    expect(secrets.filter((one) => world.lines.join("").includes(one))).toEqual([]);
    // It would be found
    await world.client.hset(world.key("planted"), "field", `x${boom}`);
    expect(holding(await everythingIn(world), secrets)).toEqual([
      `${world.key("planted")}: ${boom}`,
    ]);
  });
});
