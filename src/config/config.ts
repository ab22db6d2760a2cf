import { isIP } from "node:net";
import { resolve } from "node:path";
import { messageOf, UserError } from "../errors.ts";
import type { ChangingFile } from "./changing-file.ts";
import { ChangingPolicy } from "./changing-policy.ts";
import { type ComputeTls, computeTls } from "./compute-tls.ts";
import { asFound, Environment } from "./environment.ts";
import type { Policy } from "./policy-file.ts";
import type { Operation } from "./policy-sense.ts";
import { passwordsIn, type Proxies, readProxies } from "./proxy.ts";
import { parseRedisUrl } from "./redis-address.ts";
import { signingSecretProblem, tokenProblem } from "./slack-secrets.ts";
import { readTraces, type TracesConfig } from "./traces.ts";

export type LogLevel = "debug" | "info" | "warn" | "error";

/** `all` is gateway and worker in one process. */
export type Role = "all" | "gateway" | "worker";

/** What comes from a file is read at each use: it may have changed (`files`, `policyFile`). */
export interface Config {
  readonly role: Role;
  readonly slack: {
    readonly botToken: string;
    /** Ends with a slash. */
    readonly apiUrl: string;
    /** Undefined for a worker, which only sends. */
    readonly receive: SlackReceive | undefined;
  };
  /** `url` ends with neither a slash nor `/v1`. */
  readonly compute: {
    readonly url: string;
    readonly apiKey: string;
    /** Whether its name may lead to private addresses, or to which. */
    readonly allowPrivate: boolean | readonly string[];
    readonly tls: ComputeTls;
  };
  readonly proxies: Proxies | undefined;
  readonly redisUrl: string;
  /** How many replicas of Redis must have a claim before its call leaves; undefined: one, while any is connected. */
  readonly redisReplicas: number | undefined;
  /** Where Slack delivers over HTTP; 0: any free port. */
  readonly port: number;
  /** Where probes and figures are read. Without a host, on all interfaces. */
  readonly ops: { readonly port: number; readonly host: string | undefined };
  /** An absolute path. */
  readonly dataDir: string;
  readonly logLevel: LogLevel;
  readonly traces: TracesConfig | undefined;
  readonly allowVolatileRedis: boolean;
  /** As it counts now. Who uses both takes them together: `policyFile.inForce`. */
  readonly policy: Policy;
  readonly policyVersion: string;
  readonly policyFile: ChangingPolicy;
  /** Whether the policy file is reread when it was replaced, and not on SIGHUP alone. */
  readonly watchesPolicy: boolean;
  /** Everything above that must never be printed, for `hideSecret`. */
  readonly secrets: readonly string[];
  /** The files behind what is above, by the name of the variable. */
  readonly files: ReadonlyMap<string, ChangingFile>;
}

export type SlackReceive =
  | { mode: "socket"; readonly appToken: string }
  | { mode: "http"; readonly signingSecret: string };

/** Exit code of a process whose configuration is wrong: EX_CONFIG of sysexits.h. */
export const configExitCode = 78;

/** Every problem of the configuration, as `NAME: what is wrong`, without any value that may be secret. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(["Gatehouse can't start with this configuration:", ...problems].join("\n  "));
    this.problems = problems;
  }
}

/** Reads the environment and gatehouse.yml. Throws a ConfigError with all problems; then exit with `configExitCode`. */
export function loadConfig({
  env = process.env,
  role,
  cwd = process.cwd(),
  operations,
}: {
  env?: Readonly<Record<string, string | undefined>>;
  role: Role;
  cwd?: string;
  /** All commands, for the rules that name them. */
  operations: readonly Operation[];
}): Config {
  const from = new Environment(env, cwd);
  const botToken = from.required(
    "SLACK_BOT_TOKEN",
    "the bot token (xoxb-…) from OAuth & Permissions in your Slack app",
  );
  from.holdTo("SLACK_BOT_TOKEN", botToken, (text) => tokenProblem(text, "xoxb-"));
  const receive = role === "worker" ? undefined : slackReceive(from);
  const apiUrl = from.address("SLACK_API_URL", "https://slack.com/api/");
  const computeUrl = from.address(
    "COMPUTE_API_URL",
    undefined,
    "the address of the compute service",
  );
  const apiKey = from.required("COMPUTE_API_KEY", "the API key of the compute service");
  from.check(
    "COMPUTE_API_KEY",
    apiKey,
    /^[\u0021-\u007e]+$/,
    "has white space or other characters in it that no key has: it must be one word of ASCII characters",
  );
  const tls = computeTls(from);
  const allowPrivate = from.ranges("COMPUTE_ALLOW_PRIVATE");
  const proxies = readProxies(from);
  const redisUrl = from.required("REDIS_URL", "the address of Redis, like redis://localhost:6379");
  const redisPassword = checkRedisUrl(redisUrl, from);
  const redisReplicas =
    from.text("REDIS_REPLICAS") === undefined
      ? undefined
      : from.wholeNumber("REDIS_REPLICAS", 0, 5);
  const port = from.wholeNumber("PORT", 3000, 65_535);
  const ops = opsAddress(from, port, receive?.mode === "http");
  const logLevel = from.choice("LOG_LEVEL", ["debug", "info", "warn", "error"] as const, "info");
  const allowVolatileRedis = from.flag("GATEHOUSE_ALLOW_VOLATILE_REDIS");
  const dataDir = resolve(cwd, from.text("DATA_DIR") ?? ".gatehouse");
  const traces = readTraces(from);
  const watchesPolicy = from.flag("GATEHOUSE_WATCH");
  const policyFile = openPolicy(from, cwd, operations);
  if (from.problems.length > 0 || !policyFile) throw new ConfigError(from.problems);
  const received = receive?.mode === "socket" ? receive.appToken : receive?.signingSecret;
  const hidden = [...passwordsIn(proxies), ...Object.values(traces?.headers ?? {})];
  const secrets = [botToken, received, apiKey, redisPassword, ...hidden];
  return {
    role,
    slack: {
      get botToken() {
        return from.now("SLACK_BOT_TOKEN", botToken);
      },
      apiUrl: `${apiUrl}/`,
      receive,
    },
    compute: {
      url: computeUrl.replace(/\/v1$/, ""),
      get apiKey() {
        return from.now("COMPUTE_API_KEY", apiKey);
      },
      allowPrivate,
      tls,
    },
    proxies,
    get redisUrl() {
      return from.now("REDIS_URL", redisUrl);
    },
    redisReplicas,
    port,
    ops,
    dataDir,
    logLevel,
    traces,
    allowVolatileRedis,
    get policy() {
      return policyFile.inForce.policy;
    },
    get policyVersion() {
      return policyFile.inForce.policyVersion;
    },
    policyFile,
    watchesPolicy,
    secrets: secrets.filter((one) => one !== undefined),
    files: from.files,
  };
}

/** With both, Socket Mode: it needs no open port. */
function slackReceive(from: Environment): SlackReceive | undefined {
  const appToken = from.secret("SLACK_APP_TOKEN");
  const signingSecret = from.secret("SLACK_SIGNING_SECRET");
  if (appToken !== undefined) {
    from.holdTo("SLACK_APP_TOKEN", appToken, (text) => tokenProblem(text, "xapp-"));
    return {
      mode: "socket",
      get appToken() {
        return from.now("SLACK_APP_TOKEN", appToken);
      },
    };
  }
  if (signingSecret !== undefined) {
    from.holdTo("SLACK_SIGNING_SECRET", signingSecret, signingSecretProblem);
    return {
      mode: "http",
      get signingSecret() {
        return from.now("SLACK_SIGNING_SECRET", signingSecret);
      },
    };
  }
  if (!from.mentions("SLACK_APP_TOKEN") && !from.mentions("SLACK_SIGNING_SECRET")) {
    from.problem(
      "SLACK_APP_TOKEN",
      "is missing: set it for Socket Mode (xapp-…), or SLACK_SIGNING_SECRET for HTTP",
    );
  }
  return undefined;
}

/**
 * Probes never stand on a port that Slack reaches. Where Slack reaches none, a PORT that was set stays what it was before
 * OPS_PORT was there: theirs, on all interfaces.
 */
function opsAddress(from: Environment, slackPort: number, isSlackOutside: boolean): Config["ops"] {
  const port = from.wholeNumber("OPS_PORT", isSlackOutside ? 3001 : slackPort, 65_535);
  if (isSlackOutside && port === slackPort && port !== 0)
    from.problem("OPS_PORT", `must not be ${port}, which is PORT: the world reaches that one`);
  const isOldPort = !isSlackOutside && from.text("OPS_PORT") === undefined;
  const host = from.text("OPS_HOST");
  if (host !== undefined && isIP(host) === 0)
    from.problem(
      "OPS_HOST",
      `must be an IP address of this machine, or 0.0.0.0 for all of them, and is ${asFound(host)}`,
    );
  return { port, host: host ?? (isOldPort && from.text("PORT") ? undefined : "127.0.0.1") };
}

/** Returns the password, which must not be printed. */
function checkRedisUrl(url: string, from: Environment): string | undefined {
  let password: string | undefined;
  from.holdTo("REDIS_URL", url, (text) => {
    try {
      ({ password } = parseRedisUrl(text));
      return undefined;
    } catch (error) {
      const hint = error instanceof UserError && error.hint !== undefined ? `; ${error.hint}` : "";
      return messageOf(error) + hint;
    }
  });
  return password;
}

/** As the variable names it, or the default; it may not exist. */
export function policyPath(): string {
  return new Environment(process.env, process.cwd()).text("GATEHOUSE_CONFIG") ?? "gatehouse.yml";
}

/** Undefined where it has problems, which are reported. */
function openPolicy(
  from: Environment,
  cwd: string,
  operations: readonly Operation[],
): ChangingPolicy | undefined {
  const named = from.text("GATEHOUSE_CONFIG");
  const shown = named ?? "gatehouse.yml";
  const mayBeMissing = named === undefined;
  const place = { path: resolve(cwd, shown), shown, mayBeMissing, operations };
  const opened = ChangingPolicy.open(place);
  if (opened instanceof ChangingPolicy) return opened;
  for (const problem of opened) from.problem("GATEHOUSE_CONFIG", problem);
  return undefined;
}

/** How Slack is asked, for a look at the policy; else why it can't be, as the end of a sentence. */
export interface SlackAccess {
  apiUrl: string;
  botToken: string;
  proxies: Proxies | undefined;
}

export function loadSlackAccess(
  env: Readonly<Record<string, string | undefined>> = process.env,
): SlackAccess | string {
  const from = new Environment(env, process.cwd());
  if (!from.mentions("SLACK_BOT_TOKEN")) return "SLACK_BOT_TOKEN is not set";
  const botToken = from.required("SLACK_BOT_TOKEN", "the bot token");
  from.holdTo("SLACK_BOT_TOKEN", botToken, (text) => tokenProblem(text, "xoxb-"));
  const apiUrl = from.address("SLACK_API_URL", "https://slack.com/api/");
  const proxies = readProxies(from);
  const [problem] = from.problems;
  return problem ?? { apiUrl: `${apiUrl}/`, botToken, proxies };
}

/** For `audit …` in a terminal. Throws ConfigError. */
export function loadAuditConfig(): { redisUrl: string; dataDir: string } {
  const from = new Environment(process.env, process.cwd());
  const redisUrl = from.required("REDIS_URL", "the address of Redis, like redis://localhost:6379");
  if (from.problems.length > 0) throw new ConfigError(from.problems);
  return { redisUrl, dataDir: resolve(from.text("DATA_DIR") ?? ".gatehouse") };
}

/** For `attestation …` in a terminal: the folder that gatehouse.yml names. Throws ConfigError. */
export function loadEndorsementsFolder({
  env = process.env,
  cwd = process.cwd(),
  operations,
}: {
  env?: Readonly<Record<string, string | undefined>>;
  cwd?: string;
  operations: readonly Operation[];
}): string | undefined {
  const from = new Environment(env, cwd);
  const opened = openPolicy(from, cwd, operations);
  if (!opened) throw new ConfigError(from.problems);
  return opened.inForce.policy.attestation.endorsements;
}
