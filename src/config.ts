import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { messageOf, UserError } from "./errors.ts";
import { Environment } from "./environment.ts";
import { emptyPolicy, parsePolicy, policyVersion, type Policy } from "./policy-file.ts";
import { parseRedisUrl } from "./redis-address.ts";

export type LogLevel = "debug" | "info" | "warn" | "error";

/** `all` is gateway and worker in one process. */
export type Role = "all" | "gateway" | "worker";

export interface Config {
  readonly role: Role;
  readonly slack: {
    readonly botToken: string;
    /** Ends with a slash. */
    readonly apiUrl: string;
    /** How Slack reaches us; undefined for a worker, which only speaks. */
    readonly receive: SlackReceive | undefined;
  };
  /** `url` has neither a slash nor `/v1` at its end. */
  readonly compute: { readonly url: string; readonly apiKey: string };
  readonly redisUrl: string;
  /** 0: any free port. */
  readonly port: number;
  /** An absolute path. */
  readonly dataDir: string;
  readonly logLevel: LogLevel;
  readonly allowVolatileRedis: boolean;
  readonly policy: Policy;
  /** Changes when a rule changes: what is pending under another version is cancelled. */
  readonly policyVersion: string;
  /** Everything above that must never be printed: give each to `hideSecret`. */
  readonly secrets: readonly string[];
}

export type SlackReceive =
  | { mode: "socket"; appToken: string }
  | { mode: "http"; signingSecret: string };

/** Exit code of a process whose configuration is wrong: EX_CONFIG of sysexits.h. */
export const configExitCode = 78;

/** Everything that is wrong with the configuration, each as `NAME: what is wrong`. Never holds a value that may be secret. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(
      [
        "Gatehouse can't start with this configuration:",
        ...problems.map((problem) => `  ${problem}`),
      ].join("\n"),
    );
    this.problems = problems;
  }
}

/**
 * Reads the environment and gatehouse.yml once (design.md section 3). `cwd` is where relative paths begin.
 * Throws a ConfigError with all problems at once; the caller prints its message and exits with `configExitCode`.
 */
export function loadConfig({
  env = process.env,
  role,
  cwd = process.cwd(),
}: {
  env?: Readonly<Record<string, string | undefined>>;
  role: Role;
  cwd?: string;
}): Config {
  const from = new Environment(env, cwd);
  const botToken = from.required(
    "SLACK_BOT_TOKEN",
    "the bot token (xoxb-…), from OAuth & Permissions in your Slack app",
  );
  from.check("SLACK_BOT_TOKEN", botToken, /^(xoxe\.)?xoxb-\S+$/, "should begin with xoxb-");
  const receive = role === "worker" ? undefined : slackReceive(from);
  const apiUrl = from.address("SLACK_API_URL", "https://slack.com/api/");
  const computeUrl = from.address(
    "COMPUTE_API_URL",
    undefined,
    "the address of the Confidential Compute Service",
  );
  const apiKey = from.required("COMPUTE_API_KEY", "the key of the Confidential Compute Service");
  from.check(
    "COMPUTE_API_KEY",
    apiKey,
    /^[\u0021-\u007e]+$/,
    "should be one word of plain characters",
  );
  const redisUrl = from.required("REDIS_URL", "the address of Redis, like redis://localhost:6379");
  const redisPassword = checkRedisUrl(redisUrl, from);
  const port = from.wholeNumber("PORT", 3000, 65_535);
  const logLevel = from.choice("LOG_LEVEL", ["debug", "info", "warn", "error"] as const, "info");
  const allowVolatileRedis = from.flag("GATEHOUSE_ALLOW_VOLATILE_REDIS");
  const dataDir = resolve(cwd, from.text("DATA_DIR") ?? ".gatehouse");
  const policy = readPolicy(from, cwd);
  if (from.problems.length > 0) throw new ConfigError(from.problems);
  const heard = receive?.mode === "socket" ? receive.appToken : receive?.signingSecret;
  const secrets = [botToken, heard, apiKey, redisPassword].filter((secret): secret is string =>
    Boolean(secret),
  );
  return {
    role,
    slack: { botToken, apiUrl: `${apiUrl}/`, receive },
    compute: { url: computeUrl.replace(/\/v1$/, ""), apiKey },
    redisUrl,
    port,
    dataDir,
    logLevel,
    allowVolatileRedis,
    policy,
    policyVersion: policyVersion(policy),
    secrets,
  };
}

/** With both, Socket Mode: it needs no open port. */
function slackReceive(from: Environment): SlackReceive | undefined {
  const appToken = from.secret("SLACK_APP_TOKEN");
  const signingSecret = from.secret("SLACK_SIGNING_SECRET");
  if (appToken !== undefined) {
    from.check("SLACK_APP_TOKEN", appToken, /^xapp-\S+$/, "should begin with xapp-");
    return { mode: "socket", appToken };
  }
  if (signingSecret !== undefined) {
    from.check(
      "SLACK_SIGNING_SECRET",
      signingSecret,
      /^[\u0021-\u007e]+$/,
      "should be one word, from Basic Information in your Slack app",
    );
    return { mode: "http", signingSecret };
  }
  if (!from.mentions("SLACK_APP_TOKEN") && !from.mentions("SLACK_SIGNING_SECRET")) {
    from.problem(
      "SLACK_APP_TOKEN",
      "is missing: set it for Socket Mode (xapp-…), or SLACK_SIGNING_SECRET for HTTP",
    );
  }
  return undefined;
}

/** The password, which must not be printed. */
function checkRedisUrl(url: string, from: Environment): string | undefined {
  if (url === "") return undefined;
  try {
    return parseRedisUrl(url).password;
  } catch (error) {
    const hint = error instanceof UserError && error.hint !== undefined ? `; ${error.hint}` : "";
    from.problem("REDIS_URL", messageOf(error) + hint);
    return undefined;
  }
}

function readPolicy(from: Environment, cwd: string): Policy {
  const named = from.text("GATEHOUSE_CONFIG");
  const shown = named ?? "gatehouse.yml";
  const path = resolve(cwd, shown);
  // only the default file may be missing: a mistyped path must not quietly become "nobody may do anything"
  if (named === undefined && !existsSync(path)) return emptyPolicy();
  const result = policyAt(path, shown);
  if ("policy" in result) return result.policy;
  for (const problem of result.problems) from.problem("GATEHOUSE_CONFIG", problem);
  return emptyPolicy();
}

function policyAt(path: string, shown: string): ReturnType<typeof parsePolicy> {
  try {
    return parsePolicy(readFileSync(path, "utf8"), shown);
  } catch (error) {
    return {
      problems: [
        `${shown} can't be read (${error instanceof Error && "code" in error ? String(error.code) : "unknown"})`,
      ],
    };
  }
}

/** What `audit …` in a terminal needs: neither Slack nor the service. Throws ConfigError. */
export function loadAuditConfig({
  env = process.env,
  cwd = process.cwd(),
}: {
  env?: Readonly<Record<string, string | undefined>>;
  cwd?: string;
} = {}): { redisUrl: string; dataDir: string } {
  const from = new Environment(env, cwd);
  const redisUrl = from.required("REDIS_URL", "the address of Redis, like redis://localhost:6379");
  if (from.problems.length > 0) throw new ConfigError(from.problems);
  return { redisUrl, dataDir: resolve(cwd, from.text("DATA_DIR") ?? ".gatehouse") };
}
