import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createRefusals } from "../../../src/features/alerts/refusals.ts";
import { ApiProblem } from "../../../src/api/server.ts";
import { silentLog } from "../../../src/log/log.ts";
import { connectRedis, createKeys } from "../../../src/redis/redis.ts";
import { privateRedis } from "../../support/with-redis.ts";
import { readPending } from "../../../src/redis/pending.ts";
import { wordsOf } from "../../stories/words.ts";
import { until } from "../../support/until.ts";
import { alertmanagerBody, hmac, send, startWithChannels, usualSource } from "./sending.ts";

const channels = {
  large: usualSource,
  wrong: usualSource,
  storm: usualSource,
  partly: usualSource,
  busy: usualSource,
  signed: "format: grafana, signed: true",
};
const start = () => startWithChannels(channels);
let world: Awaited<ReturnType<typeof start>>;
beforeAll(async () => {
  world = await start();
});
afterAll(() => world.close());

/** What `/gatehouse status` says of deliveries now, without the times. */
async function statusLine(channel: keyof typeof channels): Promise<string> {
  const seen = () => world.ada.seesChannel(channel).messages;
  const before = new Set(seen().map(({ ts }) => ts));
  await world.ada.types(channel, "/gatehouse status");
  const isAnswer = /needs? attention|Everything works/;
  const answer = await until(() =>
    seen().find((one) => !before.has(one.ts) && isAnswer.test(wordsOf(one))),
  );
  const lines = wordsOf(answer).split("\n");
  return lines.find((line) => line.includes("Alerts:")) ?? "";
}

/** Alerts of a group, each as long as those of kube-prometheus. */
const stormOf = (count: number) =>
  Array.from({ length: count }, (_, n) => ({
    name: "KubePodCrashLooping",
    vm: `payments-api-7d9c6b5f4d-${n}`,
    severity: "warning",
    labels: {
      cluster: "prod-eu-1",
      container: "payments-api",
      endpoint: "http",
      instance: `10.12.${n % 250}.7:8080`,
      job: "kube-state-metrics",
      namespace: "payments",
      pod: `payments-api-7d9c6b5f4d-${n}`,
      prometheus: "monitoring/kube-prometheus-stack-prometheus",
      reason: "CrashLoopBackOff",
      service: "kube-prometheus-stack-kube-state-metrics",
      uid: "0f6d2c1e-7f0b-4a54-9d4b-0a4f0f5f9b1c",
    },
    notes: {
      description: `Pod payments/payments-api-7d9c6b5f4d-${n} (payments-api) is in waiting state (reason: "CrashLoopBackOff") on cluster prod-eu-1.`,
      runbook_url:
        "https://runbooks.prometheus-operator.dev/runbooks/kubernetes/kubepodcrashlooping",
    },
    graph: `http://kube-prometheus-stack-prometheus.monitoring:9090/graph?g0.expr=${"max_over_time%28kube_pod_container_status_waiting_reason%7Bjob%3D%22kube-state-metrics%22%2Cnamespace%3D~%22.%2A%22%2Creason%3D%22CrashLoopBackOff%22%7D%5B5m%5D%29+%3E%3D+1".repeat(2)}&g0.tab=1`,
  }));

describe("a group as large as Alertmanager sends it", () => {
  it.each([400, 1_000])("is taken whole: %d alerts", async (count) => {
    const at = await world.channel("storm");
    const body = alertmanagerBody(stormOf(count), `storm-${count}`);
    expect(JSON.stringify(body).length).toBeGreaterThan(count * 1_000);
    expect((await at.send(body)).status).toBe(202);
    await at.hears(new RegExp(`${count.toLocaleString("en-US")} alerts firing`));
  });

  it("is taken when it proves itself by a signature over all of it", async () => {
    const at = await world.channel("signed");
    const body = JSON.stringify({ ...alertmanagerBody(stormOf(400)), version: "1" });
    const signature = { "x-grafana-alerting-signature": hmac("test-secret-one", body) };
    expect((await send(world, "signed", body, signature)).status).toBe(202);
    await at.hears(/400 alerts firing/);
    const forged = { "x-grafana-alerting-signature": hmac("test-secret-two", body) };
    expect((await send(world, "signed", body, forged)).status).toBe(401);
  });
});

describe("a delivery of which some alerts can't be read", () => {
  it("shows the others, and says how many are missing and why", async () => {
    const at = await world.channel("partly");
    const body = alertmanagerBody([{}, { vm: "db-1" }]);
    const [first, second] = body.alerts;
    const alerts = [first, { ...second, startsAt: "yesterday" }];
    expect((await at.send({ ...body, alerts })).status).toBe(202);
    await at.hears(
      /^🔥 HighCpu on web-2[^]*1 alert of partly can't be read \(alerts\.1\.startsAt: must be a time like .*\)\. It may fire\./,
    );
    await at.send(body);
    await at.hears(/^🔥 HighCpu on db-1, web-2(?![^]*can't be read)/);
  });
});

describe("a refused delivery of a proven source", () => {
  const large = JSON.stringify(alertmanagerBody([{ summary: "x".repeat(4 * 1024 ** 2) }]));

  it("is told once in its channel, and by the status until one is taken again", async () => {
    const at = await world.channel("large");
    expect(await statusLine("large")).toMatch(/^✅ Alerts: /);
    const told = /^⚠️ Gatehouse refuses what large sends, [^]*larger than 4 MB\.[^]*group_by/;
    for (const _ of [1, 2]) expect((await send(world, "large", large)).status).toBe(413);
    await at.hears(told);
    expect(await statusLine("large")).toMatch(
      /^⚠️ Alerts: 2 deliveries of large refused, the last one with 413: The body is larger than 4 MB\. .*group_by/,
    );
    await at.fire([{}]);
    expect(await statusLine("large")).toMatch(/^✅ Alerts: /);
    await at.hears(/^🔥 HighCpu/);
    // It comes again within the hour: the status says so, and the channel knows it.
    expect((await send(world, "large", large)).status).toBe(413);
    expect(await statusLine("large")).toMatch(/^⚠️ Alerts: 1 delivery of large refused/);
    await at.fire([{}]);
    expect(at.cards().filter((one) => told.test(wordsOf(one)))).toHaveLength(1);
  });

  it("is told with each new reason, and never with what it says", async () => {
    const at = await world.channel("wrong");
    const body = alertmanagerBody([{ startsAt: "secret-word" }]);
    expect((await at.send(body)).status).toBe(422);
    const told = await at.hears(/refuses what wrong sends[^]*alerts\.0\.startsAt: must be a time/);
    expect(wordsOf(told)).toContain("Check that it sends the format that gatehouse.yml names");
    expect((await send(world, "wrong", '{"secret-word')).status).toBe(400);
    await at.hears(/refuses what wrong sends[^]*not JSON, or was cut\./);
    await at.fire([{}]);
    expect(at.cards().map(wordsOf).join("")).not.toContain("secret-word");
  });

  it("is told only if its sender, which repeats it, isn't heard for a while", async () => {
    const at = await world.channel("busy");
    const now = Date.now();
    const places = Array.from({ length: 3_000 }, (_, n) => [now + n / 1_000, `p-${n}`]).flat();
    const line = world.key("rate", "api", "sources.busy");
    await world.client.zadd(line, ...places.map(String));
    expect((await at.send(alertmanagerBody([{}]))).status).toBe(503);
    expect(await statusLine("busy")).toMatch(/^⚠️ Alerts: 1 delivery of busy refused/);
    const owed = async () => (await readPending(world.client, world.key)).get("notice") ?? [];
    const isBusy = (id: string) => id.startsWith("alerts-refused-busy-503");
    expect((await owed()).filter(isBusy)).toHaveLength(1);
    await world.client.del(line);
    await at.fire([{}]);
    await at.hears(/^🔥 HighCpu/);
    await until(async () => (await owed()).filter(isBusy)).toEqual([]);
    expect(await statusLine("busy")).toMatch(/^✅ Alerts: /);
    expect(at.cards().filter((one) => wordsOf(one).includes("refuses"))).toEqual([]);
  });

  it("is unknown as long as the source isn't proven", async () => {
    const wrong = { authorization: "Bearer wrong" };
    expect((await send(world, "storm", large, wrong)).status).toBe(401);
    expect(await statusLine("storm")).toMatch(/^✅ Alerts: /);
  });
});

describe("a delivery that is refused because Redis takes nothing", () => {
  it("is told once Redis is back, though its sender never repeated it", async () => {
    await using server = await privateRedis();
    const redis = await connectRedis(server.url, "commands", silentLog());
    await using _ = { [Symbol.asyncDispose]: async () => redis.disconnect() };
    const told: string[] = [];
    const refusals = createRefusals({
      redis,
      key: createKeys("test-refusals"),
      config: { policy: world.processes[0]!.config.policy },
      announce: async ({ channelId }) => told.push(channelId) > 0,
      owed: { withdraw: async () => undefined },
      log: silentLog(),
    });
    await redis.config("SET", "maxmemory", "1");
    await refusals.note("large", new ApiProblem(503, "Nothing is stored."), { isRepeated: true });
    expect([told, await refusals.find()]).toMatchObject([[], { severity: "well" }]);
    await redis.config("SET", "maxmemory", "0");
    await refusals.report();
    await refusals.report();
    expect(told).toHaveLength(1);
    expect((await refusals.find()).text).toMatch(/^1 delivery of large refused, the last .* 503: /);
  });
});
