import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { freePort } from "../../../sandbox/ensure-redis.ts";
import { testSecret } from "./sending.ts";
import { until } from "../../support/until.ts";

/** An alert as Prometheus posts it. */
export interface PostedAlert {
  name: string;
  vm: string;
  startsAt: Date;
  /** When it ended; undefined while it fires. */
  endsAt?: Date | undefined;
  labels?: Readonly<Record<string, string>>;
  annotations?: Readonly<Record<string, string>>;
}

export interface Receiver {
  name: string;
  url: string;
  maxAlerts?: number;
}

/** How long a group waits before its first flush, between two, and before it is repeated (ms). */
export interface FlushPace {
  waitMs: number;
  intervalMs: number;
  repeatMs: number;
}

const quickPace: FlushPace = { waitMs: 200, intervalMs: 1_000, repeatMs: 2 * 3600_000 };

const authorization = `http_config: { authorization: { credentials: ${testSecret} } }`;

/**
 * A configuration in which the first receiver takes every alert that no `receiver` label routes to
 * another one.
 */
function configOf(receivers: readonly Receiver[], pace: FlushPace): string {
  const [usual, ...others] = receivers;
  const routes = others.map(
    ({ name }) => `{ receiver: ${name}, matchers: ['receiver="${name}"'] }`,
  );
  const entries = receivers.map(({ name, url, maxAlerts = 0 }) => {
    const webhook = `{ url: "${url}", send_resolved: true, max_alerts: ${maxAlerts}, ${authorization} }`;
    return `  - { name: ${name}, webhook_configs: [${webhook}] }`;
  });
  return `route:
  receiver: ${usual?.name}
  group_by: [alertname]
  group_wait: ${pace.waitMs}ms
  group_interval: ${pace.intervalMs}ms
  repeat_interval: ${pace.repeatMs}ms
  routes: [${routes.join(", ")}]
receivers:
${entries.join("\n")}
`;
}

export type Peers = Awaited<ReturnType<typeof startPeers>>;

/** Starts peers of a cluster of the real Alertmanager on loopback: two, unless `count` says one. */
export async function startPeers(
  path: string,
  receivers: readonly Receiver[],
  { pace = quickPace, count = 2 }: { pace?: FlushPace; count?: 1 | 2 } = {},
) {
  const dir = await mkdtemp(join(tmpdir(), "alertmanager-"));
  const config = join(dir, "alertmanager.yml");
  await writeFile(config, configOf(receivers, pace));
  const ports = await Promise.all(Array.from({ length: 4 }, freePort));
  const [first = 0, second = 0, ...free] = ports;
  const webs = free.slice(0, count);
  const children = webs.map((web, n): ChildProcess => {
    const [own, other] = n === 0 ? [first, second] : [second, first];
    const args = [
      `--config.file=${config}`,
      `--storage.path=${join(dir, String(n))}`,
      `--web.listen-address=127.0.0.1:${web}`,
      `--cluster.listen-address=127.0.0.1:${own}`,
      `--cluster.advertise-address=127.0.0.1:${own}`,
      ...(count > 1 ? [`--cluster.peer=127.0.0.1:${other}`] : []),
      "--cluster.gossip-interval=50ms",
      "--cluster.settle-timeout=1s",
      "--cluster.peer-timeout=500ms",
    ];
    return spawn(path, args, { stdio: "ignore" });
  });

  async function call(web: number, route: string, body?: object): Promise<unknown> {
    const answer = await fetch(`http://127.0.0.1:${web}/api/v2/${route}`, {
      ...(body ? { method: "POST", body: JSON.stringify(body) } : {}),
      headers: { "content-type": "application/json" },
    });
    expect(answer.status, route).toBe(200);
    return (await answer.text().then((text) => (text === "" ? {} : JSON.parse(text)))) as unknown;
  }

  const clusters = async () => {
    const answers = webs.map(async (web) => {
      const { cluster } = (await call(web, "status")) as { cluster: { peers: unknown[] } };
      return cluster.peers.length;
    });
    return Promise.all(answers).catch(() => []);
  };
  await until(clusters).toEqual(webs.map(() => count));

  return {
    /** Posts alerts to both peers, as Prometheus does, or to one of them. */
    async post(alerts: readonly PostedAlert[], only?: number): Promise<void> {
      const body = alerts.map(({ name, vm, startsAt, endsAt, labels = {}, annotations }) => ({
        labels: { alertname: name, vm, ...labels },
        annotations: annotations ?? { summary: `${name} of ${vm}` },
        startsAt: startsAt.toISOString(),
        ...(endsAt ? { endsAt: endsAt.toISOString() } : {}),
      }));
      for (const [n, web] of webs.entries())
        if (only === undefined || only === n) await call(web, "alerts", body);
    },

    /**
     * Silences an alert at one peer; the other one learns of it a moment later. Resolves with a
     * function that ends the silence at either peer.
     */
    async silence(name: string, vm: string, by = 0): Promise<(endedBy?: number) => Promise<void>> {
      const isEqual = { isRegex: false, isEqual: true };
      const matchers = Object.entries({ alertname: name, vm }).map(([label, value]) => {
        return { name: label, value, ...isEqual };
      });
      const at = Date.now();
      const body = {
        matchers,
        startsAt: new Date(at).toISOString(),
        endsAt: new Date(at + 24 * 3600_000).toISOString(),
        createdBy: "test",
        comment: "test",
      };
      const { silenceID } = (await call(webs[by] ?? 0, "silences", body)) as { silenceID: string };
      return async (endedBy = 0) => {
        const address = `http://127.0.0.1:${webs[endedBy]}/api/v2/silence/${silenceID}`;
        expect((await fetch(address, { method: "DELETE" })).status).toBe(200);
      };
    },

    /** The alerts that are active in a peer, neither silenced nor inhibited: `name vm`, sorted. */
    async active(peer = 0): Promise<string[]> {
      const route = "alerts?active=true&silenced=false&inhibited=false";
      const all = (await call(webs[peer] ?? 0, route)) as { labels: Record<string, string> }[];
      return all.map(({ labels }) => `${labels["alertname"]} ${labels["vm"]}`).toSorted();
    },

    /** Stops a peer's process; `thaw` continues it. */
    freeze: (peer: number) => children[peer]?.kill("SIGSTOP"),
    thaw: (peer: number) => children[peer]?.kill("SIGCONT"),

    /** Number of failed deliveries of both peers. */
    async failed(): Promise<number> {
      const texts = webs.map(async (web) =>
        (await fetch(`http://127.0.0.1:${web}/metrics`)).text(),
      );
      const counts = (await Promise.all(texts)).map(
        (text) => /requests_failed_total\{[^}]*webhook[^}]*\} (\d+)/.exec(text)?.[1],
      );
      return counts.reduce((sum, one) => sum + Number(one), 0);
    },

    async [Symbol.asyncDispose]() {
      for (const child of children) {
        if (child.exitCode !== null || child.signalCode !== null) continue;
        child.kill("SIGKILL");
        await once(child, "exit");
      }
      await rm(dir, { recursive: true, force: true });
    },
  };
}
