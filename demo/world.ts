import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { parse } from "yaml";
import { type Config, loadConfig, type Role } from "../src/config/config.ts";
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
import {
  type SandboxSlack,
  type SandboxSlackOptions,
  startSandboxSlack,
} from "../sandbox/slack/index.ts";
import type { Feature } from "../src/features/define-feature.ts";
import type { SlackLimits } from "../src/core/deliver/rate-limiter.ts";
import { features, policyTerms } from "../src/features/index.ts";

/** Every option may be left out: a caller says only what its story is about. */
export interface WorldOptions {
  compute?: SandboxComputeOptions;
  slack?: SandboxSlackOptions;
  receive?: Receive;
  /** gatehouse.yml. The default is empty: everyone may view, no one may change anything. */
  policy?: string;
  /** How fast Gatehouse does what no variable and no policy sets. */
  pace?: Pace;
  /** How often a channel takes a message, and the workspace an edit. By default as often as Slack allows. */
  slackLimits?: SlackLimits;
  /** A Redis that is already running. By default the world starts one of its own. */
  redisUrl?: string;
  namespace?: string;
  /** The platforms whose revocation lists have expired, in the folder of endorsements that the policy names. */
  ranOut?: readonly Platform[];
  /** The features that Gatehouse has; all of them by default. */
  features?: readonly Feature[];
  /**
   * The Gatehouse processes to start, all within this one. The default is one that is both gateway and worker. With `[]` the world
   * has everything but Gatehouse, for a caller that starts it as a program with `world.env`.
   */
  roles?: readonly Role[];
  /** Arranges the service before Gatehouse first reads it. */
  prepare?: (compute: SandboxCompute) => void;
  /** Further variables. */
  env?: Readonly<Record<string, string>>;
  /** Receives every log line; by default nobody reads them. */
  onLog?: (line: string) => void;
  /** Called at each failpoint. */
  at?: (point: string, what: string) => Promise<void>;
}

type Receive = "socket" | "http";

/** One Gatehouse process within this one. */
export interface StartedProcess extends Running {
  config: Config;
}

/** A whole world on this machine: the service, Slack, Redis, and Gatehouse between them. */
export interface World extends AsyncDisposable {
  slack: SandboxSlack;
  compute: SandboxCompute;
  redisUrl: string;
  /** The world's own Redis; undefined where `redisUrl` named another. */
  redis: RedisServer | undefined;
  /** The variables that Gatehouse was started with. They start another process, too. */
  env: Record<string, string>;
  /** The folder that a policy names by `endorsements: endorsements`. It is empty unless the policy does. */
  endorsements: string;
  /** Fills that folder again, as it is in this weather. */
  endorse(weather: EvidenceWeatherName): Promise<void>;
  processes: StartedProcess[];
  /** Starts one more process; `env` replaces some of its variables. */
  startProcess(role: Role, env?: Readonly<Record<string, string>>): Promise<StartedProcess>;
  close(): Promise<void>;
}

/** A sandbox Slack whose app is Gatehouse, as `manifest.yml` describes it. */
export function startGatehouseSlack(options: SandboxSlackOptions = {}): Promise<SandboxSlack> {
  const file = new URL("../manifest.yml", import.meta.url);
  const manifest: unknown = parse(readFileSync(file, "utf8"));
  return startSandboxSlack({ manifest, ...options });
}

/** Where the parts of a world are, and the credentials for them. */
interface Parts {
  slack: { botToken: string; appToken: string; signingSecret: string; apiUrl: string };
  compute: { url: string; apiKey: string };
  redisUrl: string;
  policyPath: string;
  receive: Receive | undefined;
}

/** The variables that start Gatehouse between these parts, on ports that are free. */
export const variablesFor = ({
  slack,
  compute,
  redisUrl,
  policyPath,
  receive,
}: Parts): Record<string, string> => ({
  SLACK_BOT_TOKEN: slack.botToken,
  SLACK_API_URL: slack.apiUrl,
  ...(receive === "http"
    ? { SLACK_SIGNING_SECRET: slack.signingSecret }
    : { SLACK_APP_TOKEN: slack.appToken }),
  COMPUTE_API_URL: compute.url,
  COMPUTE_API_KEY: compute.apiKey,
  REDIS_URL: redisUrl,
  PORT: "0",
  OPS_PORT: "0",
  GATEHOUSE_CONFIG: policyPath,
  LOG_LEVEL: "debug",
});

/**
 * Builds every world in which Gatehouse runs: that of the demo and the tour, and those of tests (`test/support/start-world.ts`
 * gives them its defaults).
 */
export async function buildWorld(options: WorldOptions = {}): Promise<World> {
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
      ...variablesFor({
        slack: { ...slack.app, apiUrl: slack.apiUrl },
        compute,
        redisUrl,
        policyPath,
        receive: options.receive,
      }),
      DATA_DIR: path.join(folder, "data"),
      ...(options.namespace ? { REDIS_NAMESPACE: options.namespace } : {}),
      ...options.env,
    };
    const processes: StartedProcess[] = [];
    const taken = new Set<number>();
    const startProcess: World["startProcess"] = async (role, own = {}) => {
      // Each process needs a data directory of its own; the next one takes that of a closed process
      const [slot = 0] = [0, 1, 2, 3, 4, 5, 6, 7].filter((number) => !taken.has(number));
      const dataDir = `${env["DATA_DIR"]}${slot === 0 ? "" : `-${slot}`}`;
      const its = { ...env, DATA_DIR: dataDir, ...own };
      const config = loadConfig({ env: its, role, terms: policyTerms, pace: options.pace });
      for (const secret of config.secrets) hideSecret(secret);
      const started = await start(config, logOf({ role }), {
        features: options.features ?? features,
        host: "127.0.0.1",
        roots: sandboxRoots,
        ...(options.at ? { at: options.at } : {}),
        ...(options.slackLimits ? { slackLimits: options.slackLimits } : {}),
      });
      taken.add(slot);
      const running: StartedProcess = {
        ...started,
        config,
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
