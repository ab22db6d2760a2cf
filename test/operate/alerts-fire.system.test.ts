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
import { policyWith, shortDeadlines, startWorld } from "../support/start-world.ts";
import { until } from "../support/until.ts";
import { privateRedis } from "../support/with-redis.ts";

/** The alerts as shipped, with minutes for which something must hold, or that something may be old, made seconds. */
const rules = readFileSync(path.join(root, "deploy/prometheus/alerts.yml"), "utf8")
  .replaceAll(/(?<= for: )\d+[mh]/g, "1s")
  .replaceAll(/\[[25]m\]/g, "[10s]")
  .replaceAll("[1h:1m]", "[1h:1s]")
  .replace(/(?<=inventory_age_seconds\{job="gatehouse"\}\) > )300/, "20");

interface Labels {
  alertname: string;
  instance?: string;
  reason?: string;
  role?: string;
}

/** A Prometheus with these rules, which scrapes these processes. */
async function startPrometheus(program: string, instances: readonly string[]) {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-prometheus-"));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
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
  const server = spawn(program, words, { env: {}, stdio: "ignore" });
  const serverEnded = once(server, "exit");
  stack.defer(async () => {
    server.kill("SIGKILL");
    await serverEnded;
  });
  const ask = async (question: string): Promise<unknown> => {
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/${question}`).catch(
      () => undefined,
    );
    return answer?.ok ? ((await answer.json()) as { data: unknown }).data : undefined;
  };
  const kept = stack.move();
  return {
    async firing(): Promise<Labels[]> {
      const data = (await ask("alerts")) as
        | { alerts: { labels: Labels; state: string }[] }
        | undefined;
      const alerts = data?.alerts ?? [];
      return alerts.filter(({ state }) => state === "firing").map(({ labels }) => labels);
    },
    async readyCount(): Promise<number> {
      const query = encodeURIComponent("count(min by (instance) (gatehouse_ready) == 1)");
      const data = (await ask(`query?query=${query}`)) as
        | { result: { value: [number, string] }[] }
        | undefined;
      return Number(data?.result[0]?.value[1] ?? 0);
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

it("a real Prometheus fires in nine incidents, one after the other", async ({ skip }) => {
  const program = findProgram(["prometheus"]);
  if (program === undefined) throw skip("there is no prometheus here");
  await using stack = new AsyncDisposableStack();
  const redis = stack.use(await privateRedis());
  const roles = ["gateway", "gateway", "worker", "worker"] as const;
  const world = stack.use(
    await startWorld({
      redisUrl: redis.url,
      roles,
      policy: policyWith({ timing: shortDeadlines.timing }),
      pace: shortDeadlines.pace,
    }),
  );
  const { compute, slack, olivia, ada } = world;
  const instances = world.processes.map(({ opsPort }) => `127.0.0.1:${opsPort}`);
  const { firing, readyCount } = stack.use(await startPrometheus(program, instances));
  const fires = (labels: Partial<Labels>) =>
    until(firing).toContainEqual(expect.objectContaining(labels));
  const names = async () => (await firing()).map(({ alertname }) => alertname);
  await until(readyCount).toBe(4);

  // 1. An outcome is unknown
  compute.weather({ match: "POST /v1/vms/:id/snapshots", lost: "after", times: 1 });
  await olivia.types("ops", "/vm snapshot db-1 before-incident");
  await fires({ alertname: "GatehouseOutcomeUnknown" });

  // 2. The compute service is away
  compute.weather({ status: 503 });
  await fires({ alertname: "GatehouseComputeFails" });
  await fires({ alertname: "GatehouseInventoryOld" });
  compute.clear();
  await until(names).not.toContain("GatehouseInventoryOld");

  // 3. Slack is away
  const back = slack.weather.add({ method: "apps.connections.open", kind: "server-error" });
  slack.socketMode.disconnect("cut");
  await fires({ alertname: "GatehouseSlackDisconnected" });
  await fires({ alertname: "GatehouseNotReady", reason: "slack" });
  back();
  await until(readyCount).toBe(4);

  // 4. The key is revoked: no write, and no list of projects
  for (const match of ["POST /v1/*", "GET /v1/projects"]) compute.weather({ match, status: 401 });
  await olivia.types("ops", "/vm restart web-2");
  await fires({ alertname: "GatehouseFrozen" });
  compute.clear();
  await ada.types("ops", "/gatehouse thaw");
  await until(names).not.toContain("GatehouseFrozen");

  // 5. Redis is set to evict
  const admin = new Redis(redis.url);
  await admin.config("SET", "maxmemory-policy", "allkeys-lru");
  await fires({ alertname: "GatehouseRedisVolatile" });
  await admin.config("SET", "maxmemory-policy", "noeviction");
  await until(names).not.toContain("GatehouseRedisVolatile");

  // 6. Redis is full, and answers
  await admin.config("SET", "maxmemory", "1mb");
  await fires({ alertname: "GatehouseRedisRefusesWrites", reason: "redis-full" });
  await admin.config("SET", "maxmemory", "0");
  await until(readyCount).toBe(4);

  // 7. Redis is gone
  admin.disconnect();
  await redis.kill();
  await fires({ alertname: "GatehouseRedisDown" });
  await redis.start();
  await until(readyCount).toBe(4);

  // 8 and 9. A gateway of two is gone, then a worker of two
  for (const [at, role] of [
    [1, "gateway"],
    [3, "worker"],
  ] as const) {
    await world.processes[at]?.close();
    await fires({ alertname: "GatehouseProcessDown", instance: instances[at] ?? "" });
    await fires({ alertname: "GatehouseProcessMissing", role });
  }
  // The others are there; a slow machine may have missed one of them for a moment
  await until(names).not.toContain("GatehouseDown");
});
