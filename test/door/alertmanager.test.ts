import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { freePort } from "../../sandbox/ensure-redis.ts";
import { hears, wordsOf } from "../stories/words.ts";
import { programOf } from "../support/programs.ts";
import { startAlertWorld, testSecret } from "./sending.ts";

const program = programOf("prometheus-alertmanager");

/** Two peers of one cluster, on loopback. */
async function startPeers(path: string, doorPort: number) {
  const dir = await mkdtemp(join(tmpdir(), "alertmanager-"));
  const config = join(dir, "alertmanager.yml");
  const url = `http://127.0.0.1:${doorPort}/alerts/prometheus`;
  await writeFile(
    config,
    `route: { receiver: gatehouse, group_by: [alertname], group_wait: 200ms, group_interval: 1s, repeat_interval: 1h }
receivers:
  - name: gatehouse
    webhook_configs:
      - { url: "${url}", send_resolved: true, http_config: { authorization: { credentials: ${testSecret} } } }
`,
  );
  const ports = await Promise.all(Array.from({ length: 4 }, freePort));
  const [first = 0, second = 0, ...webs] = ports;
  const children = webs.map((web, n): ChildProcess => {
    const [own, other] = n === 0 ? [first, second] : [second, first];
    const args = [
      `--config.file=${config}`,
      `--storage.path=${join(dir, String(n))}`,
      `--web.listen-address=127.0.0.1:${web}`,
      `--cluster.listen-address=127.0.0.1:${own}`,
      `--cluster.advertise-address=127.0.0.1:${own}`,
      `--cluster.peer=127.0.0.1:${other}`,
      "--cluster.gossip-interval=50ms",
      "--cluster.settle-timeout=1s",
      "--cluster.peer-timeout=500ms",
    ];
    return spawn(path, args, { stdio: "ignore" });
  });
  const clusters = async () => {
    const answers = webs.map(async (web) => {
      const answer = await fetch(`http://127.0.0.1:${web}/api/v2/status`);
      const { cluster } = (await answer.json()) as { cluster: { peers: unknown[] } };
      return cluster.peers.length;
    });
    return Promise.all(answers).catch(() => []);
  };
  await expect.poll(clusters, { timeout: 20_000 }).toEqual([2, 2]);
  return {
    /** To both peers, as Prometheus does. */
    async tell(name: string, vm: string, startsAt: Date, endsAt?: Date): Promise<void> {
      const alert = {
        labels: { alertname: name, vm, severity: "critical" },
        annotations: { summary: `${name} of ${vm}` },
        startsAt: startsAt.toISOString(),
        ...(endsAt ? { endsAt: endsAt.toISOString() } : {}),
      };
      for (const web of webs) {
        const answer = await fetch(`http://127.0.0.1:${web}/api/v2/alerts`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify([alert]),
        });
        expect(answer.status).toBe(200);
      }
    },
    /** Deliveries that failed, of both. */
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
        if (child.exitCode !== null) continue;
        child.kill("SIGKILL");
        await once(child, "exit");
      }
    },
  };
}

describe.skipIf(program === undefined)("the real Alertmanager, two peers", () => {
  it("fires, groups, ends, and tells what happened while the gateway was down; nothing is lost, nothing is told twice", async () => {
    const doorPort = await freePort();
    await using world = await startAlertWorld({ env: { DOOR_PORT: String(doorPort) } });
    await using peers = await startPeers(program ?? "", doorPort);
    const began = new Date(Date.now() - 60_000);
    await peers.tell("HighCpu", "web-2", began);
    await peers.tell("HighCpu", "db-1", began);
    await hears(world.olivia, "ops", /HighCpu on db-1, web-2[^]*2 alerts firing/, 20_000);

    await world.processes[0]?.close();
    await peers.tell("DiskFull", "web-2", began);
    await peers.tell("HighCpu", "db-1", began, new Date());
    await expect.poll(peers.failed, { timeout: 20_000 }).toBeGreaterThan(1);
    await world.startProcess("all");
    await hears(world.olivia, "ops", /🔥 DiskFull on web-2/, 30_000);
    await hears(world.olivia, "ops", /^🔥 HighCpu on web-2 /, 30_000);

    await peers.tell("HighCpu", "web-2", began, new Date());
    await peers.tell("DiskFull", "web-2", began, new Date());
    await hears(world.olivia, "ops", /✅ HighCpu on db-1, web-2/, 30_000);
    await hears(world.olivia, "ops", /✅ DiskFull on web-2/, 30_000);
    const messages = world.olivia.seesChannel("ops").messages.map(wordsOf);
    expect(messages.filter((one) => one.startsWith("✅ Ended: "))).toHaveLength(2);
    expect(messages.filter((one) => /^✅ (HighCpu|DiskFull)/.test(one))).toHaveLength(2);
    expect(messages.filter((one) => /🔥 Fires again/.test(one))).toEqual([]);
  }, 120_000);
});
