import { type ChildProcess, spawn } from "node:child_process";
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
import { startProgram } from "../support/start-program.ts";
import { startWorldForPrograms } from "../support/start-world.ts";
import { until } from "../support/until.ts";

/** The alerts as shipped, with minutes for which something must hold made seconds. */
const rules = readFileSync(path.join(root, "deploy/prometheus/alerts.yml"), "utf8")
  .replaceAll(/(?<= for: )\d+[mh]/g, "1s")
  .replaceAll(/\[2m\]/g, "[2s]")
  .replaceAll("[1h:1m]", "[1h:1s]");

interface Alert {
  labels: { alertname: string; instance?: string; reason?: string; role?: string };
  state: string;
}

it("a real Prometheus fires when a gateway of two is killed, when a worker stops, and when Redis is full", async ({
  skip,
}) => {
  const prometheus = findProgram(["prometheus"]);
  if (prometheus === undefined) throw skip("there is no prometheus here");
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-prometheus-"));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const world = stack.use(await startWorldForPrograms());
  const admin = new Redis(world.redisUrl);
  stack.defer(() => admin.disconnect());

  const processes = new Map<string, { child: ChildProcess; instance: string }>();
  for (const name of ["gateway-1", "gateway-2", "worker-1", "worker-2"]) {
    const port = await freePort();
    const env = { ...world.env, DATA_DIR: path.join(folder, name), OPS_PORT: String(port) };
    const { child } = stack.use(startProgram([name.slice(0, -2)], env));
    processes.set(name, { child, instance: `127.0.0.1:${port}` });
  }
  const instanceOf = (name: string) => processes.get(name)?.instance;
  const targets = [...processes.values()].map(({ instance }) => instance);
  await writeFile(path.join(folder, "alerts.yml"), rules);
  await writeFile(
    path.join(folder, "prometheus.yml"),
    JSON.stringify({
      global: { scrape_interval: "1s", scrape_timeout: "1s", evaluation_interval: "1s" },
      rule_files: ["alerts.yml"],
      scrape_configs: [{ job_name: "gatehouse", static_configs: [{ targets }] }],
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

  for (const [name, signal, role] of [
    ["gateway-2", "SIGKILL", "gateway"],
    ["worker-2", "SIGTERM", "worker"],
  ] as const) {
    processes.get(name)?.child.kill(signal);
    await until(firing).toContainEqual(
      expect.objectContaining({ alertname: "GatehouseProcessDown", instance: instanceOf(name) }),
    );
    await until(firing).toContainEqual(
      expect.objectContaining({ alertname: "GatehouseProcessMissing", role }),
    );
  }
  expect((await firing()).map(({ alertname }) => alertname)).not.toContain("GatehouseDown");
});
