import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { loadConfig, type Role } from "../config.ts";
import { createLog, hideSecret, type Log } from "../log.ts";
import { type Running, start } from "../start.ts";
import {
  type SandboxCompute,
  type SandboxComputeOptions,
  startSandboxCompute,
} from "./compute/start-sandbox-compute.ts";
import { type RedisServer, startRedis } from "./ensure-redis.ts";
import {
  type SandboxSlack,
  type SandboxSlackOptions,
  startSandboxSlack,
} from "./slack/sandbox-slack.ts";

export interface WorldOptions {
  compute?: SandboxComputeOptions;
  slack?: SandboxSlackOptions;
  receive?: "socket" | "http";
  /** gatehouse.yml; the demo's by default. */
  policy?: string;
  /** A Redis that stands already; else a private one is started. */
  redisUrl?: string;
  namespace?: string;
  /** Which processes run, all within this one. Default: one that is gateway and worker. */
  roles?: readonly Role[];
  /** Arranges the service before Gatehouse first looks at it. */
  prepare?: (compute: SandboxCompute) => void;
  /** Every log line; by default nobody reads them. */
  onLog?: (line: string) => void;
  at?: (point: string, what: string) => Promise<void>;
}

/** A whole world on this machine: the service, Slack, Redis, and Gatehouse between them. */
export interface World extends AsyncDisposable {
  slack: SandboxSlack;
  compute: SandboxCompute;
  redisUrl: string;
  redis: RedisServer | undefined;
  /** The environment that Gatehouse was started with: a further process can be started with it too. */
  env: Record<string, string>;
  processes: Running[];
  startProcess(role: Role): Promise<Running>;
  close(): Promise<void>;
}

/** Olivia operates, Amir approves, Vera looks, Ada administers. */
export const demoPolicy = `access:
  view: ["*"]
  operate: ["S01ONCALL"]
  approve: ["S02LEADS"]
  administer: ["U0ADA"]
  breakGlass: ["U0ADA"]
approvals:
  - { operations: ["project.delete"], required: 2, expires: 15m }
protect: ["vault-*"]
attestation:
  pins:
    - targets: ["payments/web-2"]
      measurements: ["0a792b7369ad6c8a274abca6bb4eaf28e7551e7e78215418b295d65a6b7384d4d8f0a26a768fe3b0f820cd0937af436c"]
audit: { channel: C03AUDIT }
alerts: { channel: C02STATUS }
timing: { quiesce: 8s, pollFirst: 200ms, pollMost: 2s, stableGap: 400ms, restartMark: 30s, heartbeat: 500ms, sweep: 1s }
`;

export async function startWorld(options: WorldOptions = {}): Promise<World> {
  const closers: (() => Promise<unknown>)[] = [];
  const close = async () => {
    for (const stop of closers.splice(0).toReversed()) await stop().catch(() => undefined);
  };
  const log: Log = createLog({ level: "debug", write: options.onLog ?? (() => undefined) });
  try {
    const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-world-"));
    closers.push(() => rm(folder, { recursive: true, force: true }));
    const [redis, compute, slack] = await Promise.all([
      options.redisUrl === undefined ? startRedis() : undefined,
      startSandboxCompute(options.compute),
      startSandboxSlack(options.slack),
    ]);
    if (redis) closers.push(() => redis.stop());
    closers.push(
      () => compute.close(),
      () => slack.close(),
    );
    options.prepare?.(compute);
    const redisUrl = options.redisUrl ?? redis?.url ?? "";
    const policyPath = path.join(folder, "gatehouse.yml");
    await writeFile(policyPath, options.policy ?? demoPolicy);
    const env: Record<string, string> = {
      SLACK_BOT_TOKEN: slack.app.botToken,
      SLACK_API_URL: slack.apiUrl,
      ...(options.receive === "http"
        ? { SLACK_SIGNING_SECRET: slack.app.signingSecret }
        : { SLACK_APP_TOKEN: slack.app.appToken }),
      COMPUTE_API_URL: compute.url,
      COMPUTE_API_KEY: compute.apiKey,
      REDIS_URL: redisUrl,
      PORT: "0",
      GATEHOUSE_CONFIG: policyPath,
      DATA_DIR: path.join(folder, "data"),
      LOG_LEVEL: "debug",
    };
    const processes: Running[] = [];
    const startProcess = async (role: Role) => {
      const config = loadConfig({ env, role });
      for (const secret of config.secrets) hideSecret(secret);
      const running = await start(config, log.child({ role }), {
        host: "127.0.0.1",
        ...(options.namespace ? { namespace: options.namespace } : {}),
        ...(options.at ? { at: options.at } : {}),
      });
      processes.push(running);
      closers.push(() => running.close());
      if (role !== "worker" && options.receive === "http") {
        slack.app.requestUrl = `http://127.0.0.1:${running.port}/slack/events`;
      }
      return running;
    };
    for (const role of options.roles ?? ["all"]) await startProcess(role);
    if (
      options.receive !== "http" &&
      (options.roles ?? ["all"]).some((role) => role !== "worker")
    ) {
      await slack.connected();
    }
    return {
      slack,
      compute,
      redisUrl,
      redis,
      env,
      processes,
      startProcess,
      close,
      [Symbol.asyncDispose]: close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
