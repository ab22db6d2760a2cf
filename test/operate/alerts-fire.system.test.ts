import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { Redis } from "ioredis";
import { expect, it } from "vitest";
import { freePort } from "../../sandbox/ensure-redis.ts";
import { findProgram } from "../../sandbox/find-program.ts";
import { root } from "../structure/sources.ts";
import { startWorld } from "../support/start-world.ts";
import { until } from "../support/until.ts";

/** The alerts as shipped, with minutes for which something must hold made seconds. */
const rules = readFileSync(path.join(root, "deploy/prometheus/alerts.yml"), "utf8")
  .replaceAll(/(?<= for: )\d+[mh]/g, "1s")
  .replaceAll(/\[2m\]/g, "[10s]")
  .replaceAll("[1h:1m]", "[1h:1s]");

interface Alert {
  labels: { alertname: string; instance?: string; reason?: string; role?: string };
  state: string;
}

it("a real Prometheus fires when a gateway of two is gone, when a worker is, and when Redis is full", async ({
  skip,
}) => {
  const prometheus = findProgram(["prometheus"]);
  if (prometheus === undefined) throw skip("there is no prometheus here");
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-prometheus-"));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const roles = ["gateway", "gateway", "worker", "worker"] as const;
  const world = stack.use(await startWorld({ hasOwnRedis: true, roles }));
  const admin = new Redis(world.redisUrl);
  stack.defer(() => admin.disconnect());
  const instances = world.processes.map(({ opsPort }) => `127.0.0.1:${opsPort}`);
  await writeFile(path.join(folder, "alerts.yml"), rules);
  await writeFile(
    path.join(folder, "prometheus.yml"),
    JSON.stringify({
      global: { scrape_interval: "2s", scrape_timeout: "2s", evaluation_interval: "1s" },
      rule_files: ["alerts.yml"],
      scrape_configs: [{ job_name: "gatehouse", static_configs: [{ targets: instances }] }],
    }),
  );
  const port = await freePort();
  const words = [
    `--config.file=${path.join(folder, "prometheus.yml")}`,
    `--storage.tsdb.path=${path.join(folder, "data")}`,
    `--web.listen-address=127.0.0.1:${port}`,
  ];
  const server = spawn(prometheus, words, { env: {}, stdio: "ignore" });
  const serverEnded = once(server, "exit");
  stack.defer(async () => {
    server.kill("SIGKILL");
    await serverEnded;
  });
  const api = async (what: string): Promise<unknown> => {
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/${what}`).catch(() => undefined);
    return answer?.ok ? ((await answer.json()) as { data: unknown }).data : undefined;
  };
  const firing = async () => {
    const { alerts = [] } = ((await api("alerts")) ?? {}) as { alerts?: Alert[] };
    return alerts.filter(({ state }) => state === "firing").map(({ labels }) => labels);
  };
  const query = encodeURIComponent("count(min by (instance) (gatehouse_ready) == 1)");
  const howManyAreReady = async () => {
    const found = (await api(`query?query=${query}`)) as
      | { result: { value: [number, string] }[] }
      | undefined;
    return found?.result[0]?.value[1];
  };
  await until(howManyAreReady).toBe("4");

  await admin.config("SET", "maxmemory", "1mb");
  await until(firing).toContainEqual(
    expect.objectContaining({ alertname: "GatehouseRedisRefusesWrites", reason: "redis-full" }),
  );
  await admin.config("SET", "maxmemory", "0");
  await until(howManyAreReady).toBe("4");

  for (const [at, role] of [
    [1, "gateway"],
    [3, "worker"],
  ] as const) {
    await world.processes[at]?.close();
    await until(firing).toContainEqual(
      expect.objectContaining({ alertname: "GatehouseProcessDown", instance: instances[at] }),
    );
    await until(firing).toContainEqual(
      expect.objectContaining({ alertname: "GatehouseProcessMissing", role }),
    );
  }
  // The others are there; a slow machine may have missed one of them for a moment
  const names = async () => (await firing()).map(({ alertname }) => alertname);
  await until(names).not.toContain("GatehouseDown");
});
