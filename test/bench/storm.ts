import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { buildWorld, type World } from "../../demo/world.ts";
import { type AlertGroup, parseAlert } from "../../src/features/alerts/alerts.ts";
import { parseBoard } from "../../src/redis/board.ts";
import { createKeys } from "../../src/redis/redis.ts";
import { type Figure, quantile } from "./figure.ts";
import { startGatehouse } from "./process.ts";
import { ask, running, seconds, tell } from "./told.ts";

const sources = ["alerts-a", "alerts-b", "alerts-c"] as const;
const secret = "test-secret-one";
const people = Array.from({ length: 10 }, (_, n) => `oncall${n}`);
const policy = `access: { operate: [${people.map((_, n) => `U0ONCALL${n}`).join(", ")}, S01ONCALL] }
sources:
${sources.map((source) => `  ${source}: { format: alertmanager, channel: C01OPS }`).join("\n")}
`;
const env = {
  API_PORT: "0",
  ...Object.fromEntries(
    sources.map((source) => [`SOURCE_SECRET_${source.toUpperCase().replaceAll("-", "_")}`, secret]),
  ),
};
const key = createKeys();

const single = 20;
const groups = 500;
const alertsOfGroup = 20;
/** Each group is delivered so often, every time with more alerts, as Alertmanager does. */
const rounds = 4;
const stormMs = 60_000;
const patienceMs = 60_000;

/** An alert's way into its channel, alone and in a storm, with Slack's own limits. */
export async function measureStorm(): Promise<readonly Figure[]> {
  await using world = await buildWorld({
    roles: [],
    policy,
    env,
    compute: { world: { projects: 20, vmsPerProject: 40 }, transitionMs: 300 },
    slack: { rateLimits: "slack" },
  });
  for (const [n, name] of people.entries()) {
    world.slack.edit.addPerson({ id: `U0ONCALL${n}`, name });
    for (const channel of ["ops", "status"]) world.slack.edit.join(name, channel);
  }
  await using programs = new AsyncDisposableStack();
  const gatehouse = programs.use(await startGatehouse(world));
  const redis = new Redis(world.redisUrl);
  programs.defer(() => redis.disconnect());
  const vms = running(world);
  const deliver = (group: string, count: number, source = 0, from = 0) =>
    post(gatehouse.apiPort, sources[source % sources.length] ?? "", group, count, (n) => {
      // The last are those that people restart meanwhile
      return vms[(from + n) % (vms.length - 20)] ?? "";
    });

  await tell(world, ask(world, [vms.at(-1) ?? ""], ["C01OPS"], 0));
  const alone: number[] = [];
  for (let n = 0; n < single; n += 1) {
    const began = performance.now();
    await deliver(`Single${n}`, 1, n, n);
    await world.slack.until(() => isShown(world, `Single${n}`));
    alone.push((performance.now() - began) / 1000);
    await sleep(2_000); // the limits have forgotten it
  }

  const storm = Array.from({ length: groups * rounds }, async (_, n) => {
    await sleep((n * stormMs) / (groups * rounds));
    const count = (alertsOfGroup / rounds) * (Math.floor(n / groups) + 1);
    const group = n % groups;
    await deliver(`Storm${group}`, count, group, group * alertsOfGroup);
  });
  const restarts = async () => {
    const where = people.map(() => "C02STATUS").with(2, "C01OPS");
    return await tell(world, ask(world, vms.slice(-19), where, (stormMs * 2) / 3, people));
  };
  const [told] = await Promise.all([restarts(), ...storm]);
  const ended = performance.now();
  /** By the records, and by what people read. */
  const countUntold = async () =>
    Math.max(groups - (await countShown(redis)), Math.abs(groups - sum(shownInWords(world))));
  let untold = groups;
  while ((untold = await countUntold()) > 0 && performance.now() - ended < patienceMs)
    await sleep(1_000);
  return [
    {
      name: "an alert, alone, to its message: p95",
      values: [{ value: quantile(alone, 0.95), unit: "s", most: 2 }],
    },
    {
      name: `${(groups * alertsOfGroup).toLocaleString("en")} alerts in ${groups} groups within a minute: groups not shown or counted; ten restarts meanwhile: 95% are told within`,
      values: [
        { value: untold, unit: "", most: 0 },
        { value: quantile(told.map(seconds), 0.95), unit: "s", most: 8 },
      ],
    },
  ];
}

/** As Alertmanager does, which repeats what is answered with 5xx: https://prometheus.io/docs/alerting/latest/configuration/#webhook_config */
async function post(
  port: number,
  source: string,
  name: string,
  count: number,
  vmOf: (n: number) => string,
): Promise<void> {
  const alerts = Array.from({ length: count }, (_, n) => ({
    status: "firing",
    labels: { alertname: name, vm: vmOf(n), severity: "critical", job: "node", cluster: "eu-1" },
    annotations: { summary: `${name} has been true on ${vmOf(n)} for more than 5 minutes` },
    startsAt: "2026-11-25T03:00:00Z",
    endsAt: "0001-01-01T00:00:00Z",
    generatorURL: `http://prometheus.example/graph?g0.expr=${name}`,
    fingerprint: `${name}-${n}`,
  }));
  const answer = await fetch(`http://127.0.0.1:${port}/alerts/${source}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${secret}` },
    body: JSON.stringify({ version: "4", groupKey: `{}:{alertname="${name}"}`, alerts }),
  });
  const text = await answer.text();
  if (answer.status >= 500) {
    await sleep(1_000);
    return post(port, source, name, count, vmOf);
  }
  if (answer.status !== 202) throw new Error(`${answer.status} for ${name}: ${text}`);
}

const botMessages = (world: World) =>
  world.slack
    .messages()
    .filter(({ channelId, botId, threadTs }) => channelId === "C01OPS" && botId && !threadTs);

const isShown = (world: World, name: string) =>
  botMessages(world).some(({ text }) => new RegExp(`\\b${name}\\b`).test(text));

/** Groups of the storm that have a message of their own, or are members of one that Slack has. */
async function countShown(redis: Redis): Promise<number> {
  const ours = new Set<string>();
  const shown = new Set<string>();
  for (const hash of await redis.keys(key("alert", "*"))) {
    const [id, fields] = [hash.slice(key("alert", "").length), await redis.hgetall(hash)];
    const [overview, alert] = [parseBoard(id, fields), parseAlert(id, fields)];
    if (overview?.delivered.card) for (const member of overview.memberIds) shown.add(member);
    if (alert?.delivered.card) shown.add(id);
    if (alert?.state === "firing" && isOf("Storm", alert.record.group)) ours.add(id);
  }
  return ours.intersection(shown).size;
}

const isOf = (name: string, { alerts }: AlertGroup) =>
  Object.values(alerts).some(({ detail }) => detail?.name.startsWith(name));

/** The same by what people read: of each message, how many groups it is about. */
const shownInWords = (world: World): number[] =>
  botMessages(world).flatMap(({ text }) => {
    const [, shared] = /^🔥 (\d+) alert groups? firing/.exec(text) ?? [];
    return shared === undefined ? (text.startsWith("🔥 Storm") ? 1 : []) : Number(shared);
  });

const sum = (numbers: readonly number[]) => numbers.reduce((all, one) => all + one, 0);
