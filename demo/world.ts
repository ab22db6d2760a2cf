import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { loadConfig, type Role } from "../src/config/config.ts";
import type { Pace } from "../src/config/policy-schema.ts";
import { createLog, type LogFields, hideSecret, type Log } from "../src/log/log.ts";
import { type Running, start } from "../src/operate/start.ts";
import {
  evidenceWeather,
  type EvidenceWeatherName,
  type SandboxCompute,
  type SandboxComputeOptions,
  startSandboxCompute,
} from "../sandbox/compute/index.ts";
import { type RedisServer, startRedis } from "../sandbox/ensure-redis.ts";
import { type Platform, sandboxRoots, writeEndorsements } from "../sandbox/evidence/index.ts";
import type { SandboxSlack, SandboxSlackOptions } from "../sandbox/slack/index.ts";
import type { Feature } from "../src/features/define-feature.ts";
import { features, policyTerms } from "../src/features/index.ts";
import { startGatehouseSlack } from "./gatehouse-slack.ts";

export interface WorldOptions {
  compute?: SandboxComputeOptions;
  slack?: SandboxSlackOptions;
  receive?: "socket" | "http";
  /** gatehouse.yml; empty by default: everyone may view, no one may change anything. */
  policy?: string;
  /** How fast things go that no installation turns. */
  pace?: Pace;
  /** A Redis that stands already; else a private one is started. */
  redisUrl?: string;
  namespace?: string;
  /** Whose revocation lists have run out, in the folder of endorsements that the policy names. */
  ranOut?: readonly Platform[];
  /** What Gatehouse can do beyond the commands of its core; everything by default. */
  features?: readonly Feature[];
  /** Which processes run, all within this one. Default: one that is gateway and worker. */
  roles?: readonly Role[];
  /** Arranges the service before Gatehouse first looks at it. */
  prepare?: (compute: SandboxCompute) => void;
  /** Further variables. */
  env?: Readonly<Record<string, string>>;
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
  /** The folder that a policy names by `endorsements: endorsements`; filled where it does. */
  endorsements: string;
  /** Fills it again, as it is in this weather. */
  endorse(weather: EvidenceWeatherName): Promise<void>;
  processes: Running[];
  /** `env`: where it differs from the others'. */
  startProcess(role: Role, env?: Readonly<Record<string, string>>): Promise<Running>;
  close(): Promise<void>;
}

export async function startWorld(options: WorldOptions = {}): Promise<World> {
  const closers: (() => Promise<unknown>)[] = [];
  const close = async () => {
    for (const stop of closers.splice(0).toReversed()) await stop().catch(() => undefined);
  };
  const logOf = (base: LogFields): Log =>
    createLog({ level: "debug", base, write: options.onLog ?? (() => undefined) });
  try {
    const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-world-"));
    closers.push(() => rm(folder, { recursive: true, force: true }));
    const [redis, compute, slack] = await Promise.all([
      options.redisUrl === undefined ? startRedis() : undefined,
      startSandboxCompute(options.compute),
      startGatehouseSlack(options.slack),
    ]);
    if (redis) closers.push(() => redis.stop());
    closers.push(
      () => compute.close(),
      () => slack.close(),
    );
    options.prepare?.(compute);
    const redisUrl = options.redisUrl ?? redis?.url ?? "";
    const policyPath = path.join(folder, "gatehouse.yml");
    const policy = options.policy ?? "";
    await writeFile(policyPath, policy);
    const endorsements = path.join(folder, "endorsements");
    if (/\bendorsements:/.test(policy))
      await writeEndorsements(endorsements, { ranOut: options.ranOut ?? [] });
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
      OPS_PORT: "0",
      GATEHOUSE_CONFIG: policyPath,
      DATA_DIR: path.join(folder, "data"),
      LOG_LEVEL: "debug",
      ...options.env,
    };
    const processes: Running[] = [];
    const taken = new Set<number>();
    const startProcess: World["startProcess"] = async (role, own = {}) => {
      // A directory of its own, and after it was closed the next one takes it
      const [slot = 0] = [0, 1, 2, 3, 4, 5, 6, 7].filter((one) => !taken.has(one));
      const dataDir = `${env["DATA_DIR"]}${slot === 0 ? "" : `-${slot}`}`;
      const its = { ...env, DATA_DIR: dataDir, ...own };
      const config = loadConfig({ env: its, role, terms: policyTerms, pace: options.pace });
      for (const secret of config.secrets) hideSecret(secret);
      const started = await start(config, logOf({ role }), {
        features: options.features ?? features,
        host: "127.0.0.1",
        roots: sandboxRoots,
        ...(options.namespace ? { namespace: options.namespace } : {}),
        ...(options.at ? { at: options.at } : {}),
      });
      taken.add(slot);
      const running: Running = {
        ...started,
        async close() {
          await started.close();
          taken.delete(slot);
        },
      };
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
      endorsements,
      endorse: (weather) =>
        writeEndorsements(endorsements, {
          ranOut: options.ranOut ?? [],
          changed: evidenceWeather(weather),
        }),
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
