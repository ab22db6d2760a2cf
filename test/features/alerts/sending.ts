import { createHmac, hash } from "node:crypto";
import { expect } from "vitest";
import type { PersonActions } from "../../../sandbox/slack/actions.ts";
import { addChannel, seedDemo } from "../../../sandbox/slack/index.ts";
import type { SeenMessage } from "../../../sandbox/slack/seen.ts";
import { createRateLimiter } from "../../../src/core/deliver/rate-limiter.ts";
import { createAlerts } from "../../../src/features/alerts/alerts.ts";
import { secretVariable } from "../../../src/features/alerts/sources.ts";
import { createQueues } from "../../../src/queue/queues.ts";
import { boardOf } from "../../../src/redis/board.ts";
import { readPending } from "../../../src/redis/pending.ts";
import { hears, wordsOf } from "../../stories/words.ts";
import { pendingOf } from "../../support/pending.ts";
import type { TestWorld, TestWorldOptions } from "../../support/start-world.ts";
import { startWorld, testPolicy } from "../../support/start-world.ts";
import { until } from "../../support/until.ts";

export const testSecret = "test-secret-one";

export interface Sent {
  status: number;
  body: Record<string, unknown>;
  text: string;
}

export type Fired = Partial<{
  name: string;
  vm: string;
  label: string;
  status: "firing" | "resolved";
  startsAt: string;
  endsAt: string;
  summary: string;
  severity: string;
  labels: Record<string, unknown>;
  /** Annotations beside the summary. */
  notes: Record<string, unknown>;
  graph: unknown;
}>;

export const minute = (n: number) => new Date(Date.UTC(2026, 10, 25, 3, n)).toISOString();

/**
 * A body in Alertmanager's format:
 * https://prometheus.io/docs/alerting/latest/configuration/#webhook_config
 */
export function alertmanagerBody(alerts: readonly Fired[], groupKey = '{}:{alertname="HighCpu"}') {
  return {
    version: "4",
    groupKey,
    truncatedAlerts: 0,
    status: alerts.some(({ status = "firing" }) => status === "firing") ? "firing" : "resolved",
    receiver: "gatehouse",
    groupLabels: { alertname: "HighCpu" },
    commonLabels: {},
    commonAnnotations: {},
    externalURL: "http://alertmanager.example:9093",
    alerts: alerts.map((one) => {
      const { name = "HighCpu", vm = "web-2", label = "vm", status = "firing" } = one;
      return {
        status,
        labels: {
          alertname: name,
          [label]: vm,
          severity: one.severity ?? "critical",
          ...one.labels,
        },
        annotations: { summary: one.summary ?? "CPU above 95% for 5 min", ...one.notes },
        startsAt: one.startsAt ?? minute(0),
        endsAt: status === "resolved" ? (one.endsAt ?? minute(9)) : "0001-01-01T00:00:00Z",
        generatorURL: one.graph ?? "http://prometheus.example/graph",
        fingerprint: hash("sha256", `${name} ${vm}`).slice(0, 16),
      };
    }),
  };
}

/** PagerDuty's example: https://developer.pagerduty.com/docs/webhooks-overview */
export const pagerdutyBody = (
  status = "triggered",
  occurred = "2026-11-25T03:00:00Z",
  key = "web-2",
) => ({
  event: {
    id: "5ac64822-4adc-4fda-ade0-410becf0de4f",
    event_type: `incident.${status}`,
    resource_type: "incident",
    occurred_at: occurred,
    agent: { id: "PLH1HKV", type: "user_reference" },
    client: null,
    data: {
      id: "PGR0VU2",
      type: "incident",
      number: 2,
      status,
      incident_key: key,
      created_at: "2026-11-25T02:59:00Z",
      title: "A little bump in the road",
      service: { id: "PF9KMXH", summary: "API Service", type: "service_reference" },
      assignees: [],
      priority: { id: "PSO75BM", summary: "P1", type: "priority_reference" },
      urgency: "high",
    },
  },
});

export const sources = `sources:
  prometheus: { format: alertmanager, channel: C01OPS, offer: [vm.snapshot] }
  grafana: { format: grafana, channel: C01OPS, signed: true, timestampHeader: X-Grafana-Time }
  grafana-plain: { format: grafana, channel: C01OPS }
  pagerduty: { format: pagerduty, channel: C01OPS, vm: [incident_key, title] }
  cron: { format: plain, channel: C01OPS }
  by-team: { format: alertmanager }
`;

export const sourceSecrets = {
  API_PORT: "0",
  SOURCE_SECRET_PROMETHEUS: testSecret,
  SOURCE_SECRET_GRAFANA: "test-secret-grafana",
  SOURCE_SECRET_GRAFANA_PLAIN: "test-secret-grafana",
  SOURCE_SECRET_PAGERDUTY: "test-secret-old test-secret-new",
  SOURCE_SECRET_CRON: testSecret,
  SOURCE_SECRET_BY_TEAM: testSecret,
};

export const startAlertWorld = (options: Parameters<typeof startWorld>[0] = {}) =>
  startWorld({
    policy: `${testPolicy}${sources}`,
    ...options,
    env: { ...sourceSecrets, ...options.env },
  });

export const bearer = (secret = testSecret) => ({ authorization: `Bearer ${secret}` });

export const hmac = (secret: string, body: string) =>
  createHmac("sha256", secret).update(body).digest("hex");

/** Posts a delivery to the API of a process. */
export async function send(
  world: Pick<TestWorld, "processes">,
  source: string,
  body: string | Buffer | object,
  headers: Readonly<Record<string, string>> = bearer(),
): Promise<Sent> {
  const port = world.processes[0]?.apiPort;
  const raw = Buffer.isBuffer(body)
    ? new Uint8Array(body)
    : typeof body === "string"
      ? body
      : JSON.stringify(body);
  const answer = await fetch(`http://127.0.0.1:${port}/alerts/${source}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: raw,
  });
  const text = await answer.text();
  return { status: answer.status, text, body: JSON.parse(text) as Record<string, unknown> };
}

export function channelNamed(world: TestWorld, wanted: string) {
  const found = [...world.slack.workspace.channels.values()].find(({ name }) => name === wanted);
  if (!found) throw new Error(`no channel ${wanted}`);
  return found;
}

export const fire = async (
  world: TestWorld,
  alerts: readonly Fired[],
  { groupKey = "g", source = "prometheus" } = {},
) => {
  const sent = await send(world, source, alertmanagerBody(alerts, groupKey));
  expect(sent.status).toBe(202);
  return sent.body;
};

export const inChannel = (world: TestWorld, channel = "ops") =>
  world.ada.seesChannel(channel).messages.filter(({ threadTs }) => threadTs === undefined);

/** Whether no message is owed any more. */
export const isQuiet = (world: TestWorld) =>
  until(() => pendingOf(world.client, world.key, "alert")).toBe(0);

/** Makes these due, as if the time until then were over. */
export async function makeDue(
  { client, key }: Pick<TestWorld, "client" | "key">,
  kind: "alert" | "alert-held" | "remedy",
  ...ids: readonly string[]
): Promise<void> {
  const queues = createQueues(client, key.prefix);
  queues.assign(kind, queues.messages);
  for (const id of ids) {
    await client.zadd(key("pending"), 0, `${kind} ${id}`);
    await queues.wake(kind, id);
  }
  await queues.close();
}

/** Lets a channel take no message, as if Slack had said to wait. Resolves with what lets it again. */
export async function holdPosts({ client, key }: TestWorld, channelId = "C01OPS") {
  await createRateLimiter(client, key).pause({ post: channelId }, 3_600_000);
  return async () => void (await client.del(key("pace", "post", channelId)));
}

/**
 * Fires groups of one alert each while their channel takes no message, so that all of them share one. Resolves with what that says once
 * it is posted.
 */
export async function fireTogether(
  world: TestWorld,
  alerts: readonly Fired[],
  { source = "prometheus", channel = "ops" } = {},
): Promise<SeenMessage> {
  const { id: channelId } = channelNamed(world, channel);
  const letPosts = await holdPosts(world, channelId);
  const fired = alerts.map((one) => fire(world, [one], { source, groupKey: one.name ?? "" }));
  const ids = (await Promise.all(fired)).map(({ alert }) => String(alert));
  // Each has waited for its turn long enough
  for (const id of ids) await world.client.hset(world.key("alert", id), "createdAt", 0);
  await makeDue(world, "alert", ...ids);
  const { getMany } = createAlerts(world.client, world.key);
  const boards = async () => (await getMany(ids)).map(({ delivered }) => boardOf(delivered));
  const [board = ""] = await until(async () => {
    const all = await boards();
    return all.every((one) => one !== undefined) && all;
  });
  await letPosts();
  await makeDue(world, "alert", board);
  return hears(world.ada, channel, new RegExp(`^🔥 ${alerts.length} alert groups firing`));
}

export const usualSource = "format: alertmanager, offer: [vm.snapshot]";

/**
 * A world for several tests, with a channel for each and a source that tells only there, so that no test reads what another one was
 * told. `channels` says by the name of each what its source is like.
 */
export async function startWithChannels<Name extends string>(
  channels: Readonly<Record<Name, string>>,
  { policy = testPolicy, env, ...options }: TestWorldOptions = {},
) {
  const all = Object.entries<string>(channels).map(([name, source], n) => ({
    id: `C0OWN${n}`,
    name,
    source,
  }));
  const lines = all.map(({ id, name, source }) => `  ${name}: { channel: ${id}, ${source} }\n`);
  const secrets = all.map(({ name }) => [secretVariable(name), testSecret]);
  const world = await startAlertWorld({
    ...options,
    policy: `${policy}${sources}${lines.join("")}`,
    env: { ...Object.fromEntries(secrets), ...env },
    slack: {
      ...options.slack,
      seed(workspace) {
        seedDemo(workspace);
        const members = ["U0ADA", "U0OLIVIA", "U0AMIR", "U0VERA", workspace.app.botUserId];
        for (const { id, name } of all) addChannel(workspace, { id, name, members });
      },
    },
  });
  return {
    ...world,
    /** Begins a test in its channel. */
    async channel(name: Name) {
      // Slack's limits begin anew, and the same change within ten seconds is another request
      const same = await world.client.keys(world.key("same", "*"));
      await world.client.del(world.key("pace", "edit"), ...same);
      world.compute.forget();
      const ids = new Set<string>();
      const { id } = channelNamed(world, name);
      const messages = () => world.ada.seesChannel(name).messages;
      const owed = async () => (await readPending(world.client, world.key)).get("alert") ?? [];
      return {
        id,
        send: (body: object, headers?: Readonly<Record<string, string>>) =>
          send(world, name, body, headers),
        async fire(alerts: readonly Fired[], groupKey = "g") {
          const taken = await fire(world, alerts, { groupKey, source: name });
          ids.add(String(taken["alert"]));
          return taken;
        },
        hears: (words: RegExp, person: PersonActions = world.olivia) => hears(person, name, words),
        cards: () => messages().filter(({ threadTs }) => threadTs === undefined),
        thread: ({ ts }: SeenMessage) =>
          messages()
            .filter((one) => one.threadTs === ts && one.ts !== ts)
            .map(wordsOf),
        /** Waits until no message about what fired here is owed. */
        quiet: () => until(async () => (await owed()).filter((one) => ids.has(one))).toEqual([]),
        archive: (archived = true) => void (channelNamed(world, name).archived = archived),
      };
    },
  };
}
