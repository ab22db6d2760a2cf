import type { Config, SlackReceive } from "../config/config.ts";
import { type Feature, commandsWith } from "../features/define-feature.ts";
import { parseRedisUrl } from "../config/redis-address.ts";
import { policyWarnings } from "../config/policy-warnings.ts";
import { version } from "../config/version.ts";
import { messageOf } from "../errors.ts";
import { type Log, hideSecret } from "../log/log.ts";
import { createTelemetry } from "../log/telemetry.ts";
import { withoutFloods } from "../redis/redis.ts";
import { requestable } from "../registry/define.ts";
import type { Gateway } from "./gateway.ts";
import { type Status, createStatus } from "./checks/checks.ts";
import { startHealth } from "./health.ts";
import { holdDirectory } from "./hold-directory.ts";
import { openApi } from "./open-api.ts";
import { createMeasure } from "./measure.ts";
import { Readiness } from "./readiness.ts";
import { type Overrides, type Services, openServices } from "./services.ts";
import { startTrail } from "./trail.ts";
import { startWebServer } from "./web-server.ts";
import { startWorker } from "./worker.ts";

/**
 * A started process. Closing it takes no new work, ends or hands back running work, and releases
 * everything.
 */
export interface Running {
  /** The port where Slack delivers over HTTP, or else the port of the probes. */
  readonly port: number;
  /** The port of the probes. */
  readonly opsPort: number;
  /** The port of the API, if there is one. */
  readonly apiPort: number | undefined;
  /** Rereads the policy file. Never rejects. */
  reload(): Promise<void>;
  close(): Promise<void>;
}

interface StartOptions extends Overrides {
  /** The features of this process. `features/index.ts` has all of them. */
  features: readonly Feature[];
  /** Ends a start in progress: what it has opened is closed, and `start` rejects. */
  signal?: AbortSignal;
  /** Called when the process can't continue and should be restarted. */
  onWedged?: (why: string, error?: unknown) => void;
  /** The interface of Slack's port and of the API's. By default HOST. */
  host?: string;
}

/** Opens what a process of this role needs, and closes it in reverse order. */
export async function start(config: Config, fullLog: Log, options: StartOptions): Promise<Running> {
  const open = new AsyncDisposableStack();
  const readiness = new Readiness(() => open.disposed, options.onWedged);
  const log = withoutFloods(fullLog, () => readiness.isRedisWell());
  open.defer(() => log.close());
  const close = () => open.disposeAsync();
  const opened: Services["opened"] = (thing) => {
    const end = () => thing.close().catch((error: unknown) => log.warn("stop.failed", { error }));
    if (open.disposed) {
      void end();
      throw new Error("stopped during the start");
    }
    open.defer(async () => void (await end()));
    return thing;
  };
  const { promise: stopped, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(new Error("stopped during the start"));
  options.signal?.addEventListener("abort", onAbort, { once: true });
  try {
    options.signal?.throwIfAborted();
    const ports = openParts(config, log, { ...options, opened, readiness });
    return { ...(await Promise.race([ports, stopped])), close };
  } catch (error) {
    await close();
    throw error;
  } finally {
    options.signal?.removeEventListener("abort", onAbort);
  }
}

interface Opening extends StartOptions {
  opened: Services["opened"];
  readiness: Readiness;
}

async function openParts(
  config: Config,
  log: Log,
  options: Opening,
): Promise<Omit<Running, "close">> {
  const { opened, readiness, host = config.host } = options;
  watchSecrets(config, log);
  for (const why of config.warnings) log.warn("config.warning", { why });
  warnOfPolicy(config, log);
  opened(await holdDirectory(config.dataDir));
  const commands = commandsWith(options.features);
  const telemetry = createTelemetry({
    role: config.role,
    version,
    commands: requestable(commands).map(({ name }) => name),
  });
  // Health comes before everything that may wait, so that a process that can't continue is able
  // to say why.
  let measure: (() => Promise<void>) | undefined;
  const health = opened(
    await startHealth({
      variable: "OPS_PORT",
      ...config.ops,
      log,
      async figures() {
        telemetry.slackConnected.set(readiness.isSlackConnected() ? 1 : 0);
        telemetry.setLogLost(options.logLoss?.().lines ?? 0);
        const measured = measure?.();
        telemetry.setUnready((await readiness.unready()).map(({ reason }) => reason));
        await measured;
        return telemetry.render();
      },
      alive: () => readiness.wedged,
      ready: async () => (await readiness.unready())[0]?.problem,
    }),
  );
  const on = await openServices(config, log, { ...options, commands, opened, telemetry });
  on.policyKeeper.onChanged(() => {
    // A new policy may name a source with another secret.
    watchSecrets(config, log);
    warnOfPolicy(config, log);
  });
  measure = createMeasure(on);
  const status = createStatus(on);
  readiness.status = status;
  const wedge = (why: string, error?: unknown) => readiness.wedge(why, error);
  // A worker continues with existing requests at once; only what needs Slack waits.
  if (config.role !== "gateway") await startWorker(on);
  if (config.role === "worker")
    on.confirmed.catch((error: unknown) => wedge(messageOf(error), error));
  else startTrail(on, wedge);
  const { receive } = config.slack;
  const receiving = receive && (await openGateway(on, { receive, host, status, readiness }));
  const apiPort =
    receiving &&
    config.api &&
    (await openApi({ port: config.api.port, host }, on, {
      contextNow: receiving.gateway.contextNow,
      ready: async () => (await readiness.unready("API"))[0]?.reason,
    }));
  // This is opened last, so that it is closed first: no new work is begun while running work
  // ends.
  opened(on.taking);
  readiness.isStarted = true;
  const { policyVersion } = config;
  const { port: opsPort } = health;
  const port = receiving?.port ?? opsPort;
  const redis = on.redisCheck.kind;
  log.info("process.started", { version, port, opsPort, apiPort, policyVersion, redis });
  return { port, opsPort, apiPort, reload: on.policyKeeper.reload };
}

/** Opens what receives from Slack. The port is that of HTTP, and undefined in Socket Mode. */
async function openGateway(
  on: Services,
  {
    receive,
    host,
    status,
    readiness,
  }: { receive: SlackReceive; host: string | undefined; status: Status; readiness: Readiness },
): Promise<{ gateway: Gateway; port: number | undefined }> {
  // Without Bolt, a worker needs a quarter less memory.
  const { startGateway } = await import("./gateway.ts");
  const identity = await on.confirmed;
  const gateway = on.opened(
    await startGateway({
      ...on,
      contributed: on.features.contributed,
      identity,
      receive,
      status: status.facts,
      standstill: on.policyKeeper.standstill,
    }),
  );
  readiness.gateway = gateway;
  on.taking.add(gateway.recovering);
  if (receive.mode !== "http") return { gateway, port: undefined };
  // This is the only port that is open to the world. It serves Slack's path, and shows nothing of
  // this process.
  const api = { port: on.config.port, host, log: on.log };
  const { port } = on.opened(await startWebServer(api, gateway.route));
  return { gateway, port };
}

/**
 * From now on, secrets are kept out of the log, including new ones in files that change. Each
 * change of such a file is logged.
 */
function watchSecrets(config: Config, log: Log): void {
  const { files } = config;
  for (const secret of config.secrets) hideSecret(secret);
  for (const [variable, file] of files) {
    file.onNews = (news) => {
      if (news.kind === "kept")
        return log.warn("config.file-unusable", { variable, why: news.why });
      const isUrl = variable === "REDIS_URL";
      for (const secret of variable.startsWith("SOURCE_SECRET_")
        ? news.text.split(/\s+/)
        : [news.text])
        hideSecret(isUrl ? (parseRedisUrl(secret).login.password ?? "") : secret);
      log.info("config.file-changed", { variable });
    };
  }
}

/** Logs what the policy in force says and hardly anyone means. */
function warnOfPolicy({ policy, policyFile }: Config, log: Log): void {
  for (const { path, text: problem, mend } of policyWarnings(policy))
    log.warn("policy.warning", { why: policyFile.placeOf(path) + problem, hint: mend });
}
