import { resolve } from "node:path";
import { getCACertificates } from "node:tls";
import { ChangingPolicy } from "./changing-policy.ts";
import { type ClientCertificate, isTakenByTls } from "./compute-tls.ts";
import { ConfigError } from "./config-error.ts";
import {
  callerNames,
  type Env,
  Environment,
  type logLevels,
  type VariableName,
  variableNames,
  type Variables,
} from "./environment.ts";
import type { Policy } from "./policy-file.ts";
import type { Pace } from "./policy-schema.ts";
import { callersIn, type PolicyTerms } from "./policy-section.ts";
import { passwordsIn, proxiesIn, type Proxies, proxyNames } from "./proxy.ts";
import { parseRedisUrl } from "./redis-address.ts";
import { processEnv } from "./process-env.ts";

export type LogLevel = (typeof logLevels)[number];

/** `all` runs gateway and worker in one process. */
export type Role = "all" | "gateway" | "worker";

/**
 * Values that come from a file are read again at each use, because the file may have changed
 * (`files`, `policyFile`).
 */
export type Config = ReturnType<typeof loadConfig>;
export type SlackReceive = NonNullable<Config["slack"]["receive"]>;

interface From {
  env?: Env;
  cwd?: string;
  /** The commands and sections that gatehouse.yml can name. */
  terms: PolicyTerms;
  /** Defaults to `usualPace`; tests and the sandbox pass their own. */
  pace?: Pace | undefined;
}

/** Reads the environment and gatehouse.yml. Throws one ConfigError with all problems. */
export function loadConfig({
  env = processEnv,
  role,
  cwd = process.cwd(),
  terms,
  pace,
  isPolicyLeftOut = false,
}: From & {
  role: Role;
  /** Whether an empty policy stands for the file, which `doctor` found to be wrong. */
  isPolicyLeftOut?: boolean;
}) {
  const from = new Environment(env, cwd);
  const receiver = role === "worker" ? undefined : receiverOf(from);
  // In Socket Mode, too, the API verifies Slackbot's requests with the signing secret.
  const isForApi = (name: VariableName) =>
    name === "SLACK_SIGNING_SECRET" && from.mentions("API_PORT") && from.mentions(name);
  const isElsewhere = (name: VariableName) =>
    [...receivers, ...callerNames].some((variable) => variable === name);
  const isRead = (name: VariableName) => name === receiver || !isElsewhere(name) || isForApi(name);
  const read = from.readVariables(...variableNames.filter(isRead));
  const receive = receiver && {
    mode: receiver === "SLACK_APP_TOKEN" ? ("socket" as const) : ("http" as const),
    /** The app token for Socket Mode, or the signing secret for HTTP. */
    get secret() {
      return read[receiver];
    },
  };
  const proxies = proxiesIn(read);
  const { PORT: port, OPS_PORT: opsPort, OPS_HOST: opsHost, API_PORT: apiPort } = read;
  if (receive?.mode === "http" && opsPort === port && port !== 0)
    from.problems.push(`OPS_PORT: must not be ${port}, which is PORT: the world reaches that one`);
  if (apiPort && [opsPort, receive?.mode === "http" ? port : undefined].includes(apiPort))
    from.problems.push(`API_PORT: must not be ${apiPort}, which another port of this process is`);
  from.problems.push(...tlsProblems(from, read));
  from.noteMistyped();
  const policyFile = openPolicy(from, { cwd, terms, pace, isPolicyLeftOut });
  if (from.problems.length > 0 || !policyFile) throw new ConfigError(from.problems);
  const signingSecret = (): string | undefined => read.SLACK_SIGNING_SECRET;
  /** The secrets of the callers that gatehouse.yml admits to the API. Workers have no API. */
  const callerSecrets = () =>
    role === "worker" || apiPort === undefined
      ? []
      : callersIn(policyFile.inForce.policy).flatMap(({ secret }) =>
          secret === undefined ? [] : [from.secrets(secret)],
        );
  const secrets = [
    read.SLACK_BOT_TOKEN,
    receive?.secret,
    signingSecret(),
    read.COMPUTE_API_KEY,
    parseRedisUrl(read.REDIS_URL).login.password,
    ...passwordsIn(proxies),
  ];
  return {
    role,
    slack: {
      get botToken() {
        return read.SLACK_BOT_TOKEN;
      },
      /** Ends with a slash. */
      apiUrl: `${read.SLACK_API_URL}/`,
      /** Undefined in a worker, which only sends. */
      receive,
    },
    compute: {
      /** Ends with neither a slash nor `/v1`. */
      url: read.COMPUTE_API_URL,
      get apiKey() {
        return read.COMPUTE_API_KEY;
      },
      /**
       * Whether the service's name may resolve to private addresses: true, false, or the allowed
       * ranges.
       */
      allowPrivate: read.COMPUTE_ALLOW_PRIVATE,
      tls: () => ({
        ca: read.COMPUTE_CA_FILE,
        cert: read.COMPUTE_CLIENT_CERT_FILE,
        key: read.COMPUTE_CLIENT_KEY_FILE,
      }),
    },
    proxies,
    /** Authorities that every connection trusts in addition to the default ones, in PEM. */
    get authorities() {
      return read.CA_FILE;
    },
    get redisUrl() {
      return read.REDIS_URL;
    },
    /** The client certificate for Redis and its sentinels, if one is set. */
    get redisCertificate() {
      return redisCertificateIn(read);
    },
    /** The name, in braces, with which each key of this installation begins. */
    redisNamespace: read.REDIS_NAMESPACE,
    /**
     * How many replicas of Redis must have a claim before its call is sent. Undefined: one, while
     * any is connected.
     */
    redisReplicas: read.REDIS_REPLICAS,
    /** The port where Slack delivers over HTTP; 0 means any free port. */
    port,
    /** The address that `port` and the API's port are bound to. Undefined: all addresses. */
    host: read.HOST,
    /** The address of probes and metrics, which is never a port that Slack reaches. */
    ops: { port: opsPort, host: opsHost },
    /** Where alerts, services, and agents call the API. Undefined unless API_PORT is set. */
    api: apiPort === undefined ? undefined : { port: apiPort, signingSecret },
    /**
     * The secrets of an API caller, from a variable that a section of gatehouse.yml names: at most
     * two, and none when there is a problem.
     */
    callerSecret: (variable: string) => from.secrets(variable),
    /** Why callers with these secrets are refused, as `NAME: what is wrong`. */
    get callerProblems(): readonly string[] {
      return callerSecrets().flatMap(({ problem = [] }) => problem);
    },
    /** Absolute path. */
    dataDir: resolve(cwd, read.DATA_DIR),
    logLevel: read.LOG_LEVEL,
    /** Problems with variables that Gatehouse works without, as `NAME: what is wrong`. */
    warnings: from.warnings,
    allowVolatileRedis: read.GATEHOUSE_ALLOW_VOLATILE_REDIS,
    /**
     * The policy in force now. Code that needs the version, too, takes both at once from
     * `policyFile.inForce`.
     */
    get policy(): Policy {
      return policyFile.inForce.policy;
    },
    get policyVersion(): string {
      return policyFile.inForce.policyVersion;
    },
    policyFile,
    /** Whether a replaced policy file is reread by itself, and not only on SIGHUP. */
    watchesPolicy: read.GATEHOUSE_WATCH,
    /** All values above that must never be printed, for `hideSecret`. */
    get secrets(): readonly string[] {
      const ofCallers = callerSecrets().flatMap((caller) => caller.secrets);
      return [...secrets.filter((secret) => secret !== undefined), ...ofCallers];
    },
    /** The files that values above come from, by the name of the variable. */
    files: from.files,
  };
}

const receivers = ["SLACK_APP_TOKEN", "SLACK_SIGNING_SECRET"] as const;

/** When both are set, Socket Mode is used, because it needs no open port. */
function receiverOf(from: Environment): (typeof receivers)[number] {
  const [socket, http] = receivers;
  return from.mentions(http) && !from.mentions(socket) ? http : socket;
}

/** Problems of two files together, when each by itself is valid. */
function tlsProblems(from: Environment, read: Variables): readonly string[] {
  const pairs = [["COMPUTE_CLIENT_CERT_FILE", "COMPUTE_CLIENT_KEY_FILE"], redisPair] as const;
  return pairs.flatMap((pair) => {
    const [lacking] = pair.filter((name) => !from.mentions(name));
    const [named] = pair.filter((name) => from.mentions(name));
    if (lacking && named) return [`${lacking}: is missing, and ${named} is set`];
    const [cert, key] = pair.map((name) => read[name]);
    const isPair = cert === undefined || key === undefined || isTakenByTls({ cert, key });
    if (!isPair) return [`${pair[1]}: is not the key of ${pair[0]}`];
    const isInTheClear = named === "REDIS_CERT_FILE" && read.REDIS_URL?.startsWith("redis:");
    return isInTheClear
      ? [`${named}: is set, and REDIS_URL isn't rediss://, so nobody asks for a certificate`]
      : [];
  });
}

const redisPair = ["REDIS_CERT_FILE", "REDIS_KEY_FILE"] as const;

const redisCertificateIn = (
  read: Pick<Variables, (typeof redisPair)[number]>,
): ClientCertificate | undefined =>
  read.REDIS_CERT_FILE === undefined
    ? undefined
    : { cert: read.REDIS_CERT_FILE, key: read.REDIS_KEY_FILE };

/**
 * Whether NODE_EXTRA_CA_CERTS is set but Node.js hasn't read it, as in an --env-file: Node.js looks
 * only at the environment that it is started in.
 */
export const isExtraUnread = (env: Env = processEnv): boolean =>
  (env["NODE_EXTRA_CA_CERTS"] ?? "") !== "" && getCACertificates("extra").length === 0;

const usualPolicy = "gatehouse.yml";

/** The path as the variable gives it, or the default path. The file may not exist. */
export function policyPath(): string {
  return (
    new Environment(processEnv).readVariables("GATEHOUSE_CONFIG").GATEHOUSE_CONFIG ?? usualPolicy
  );
}

/** Undefined when the policy has problems, which are added to `from.problems`. */
function openPolicy(
  from: Environment,
  {
    cwd,
    terms,
    pace,
    isPolicyLeftOut = false,
  }: Required<Pick<From, "cwd">> & Pick<From, "terms" | "pace"> & { isPolicyLeftOut?: boolean },
): ChangingPolicy | undefined {
  const { GATEHOUSE_CONFIG: named } = from.readVariables("GATEHOUSE_CONFIG");
  const shown = named ?? usualPolicy;
  const mayBeMissing = named === undefined;
  const place = { path: resolve(cwd, shown), shown, mayBeMissing, terms, pace };
  if (isPolicyLeftOut) return ChangingPolicy.leftOut(place);
  const opened = ChangingPolicy.open(place);
  if (opened instanceof ChangingPolicy) return opened;
  from.problems.push(...opened.map((problem) => `GATEHOUSE_CONFIG: ${problem}`));
  return undefined;
}

/**
 * How `policy check` can ask Slack. A string is the reason why it can't, worded as the end of a
 * sentence.
 */
export interface SlackAccess {
  apiUrl: string;
  botToken: string;
  /** Authorities that the connection trusts in addition to the default ones, in PEM. */
  authorities?: string | undefined;
  proxies: Proxies | undefined;
}

export function loadSlackAccess(env: Env = processEnv): SlackAccess | string {
  const from = new Environment(env);
  if (!from.mentions("SLACK_BOT_TOKEN")) return "SLACK_BOT_TOKEN is not set";
  const read = from.readVariables("SLACK_BOT_TOKEN", "SLACK_API_URL", "CA_FILE", ...proxyNames);
  const [problem] = from.problems;
  if (problem !== undefined) return problem;
  const apiUrl = `${read.SLACK_API_URL}/`;
  const { SLACK_BOT_TOKEN: botToken, CA_FILE: authorities } = read;
  return { apiUrl, botToken, authorities, proxies: proxiesIn(read) };
}

/**
 * For `policy check`: why the API caller with this secret would be refused here. Undefined when
 * this process has no API.
 */
export function loadCallerProblems(env: Env = processEnv) {
  const from = new Environment(env);
  if (!from.mentions("API_PORT")) return undefined;
  return (variable: string) => from.secrets(variable).problem;
}

/** For `audit …` in a terminal. Throws ConfigError. */
export function loadAuditConfig() {
  const from = new Environment(processEnv);
  const read = from.readVariables(
    "REDIS_URL",
    "REDIS_NAMESPACE",
    "DATA_DIR",
    "CA_FILE",
    ...redisPair,
  );
  if (from.problems.length > 0) throw new ConfigError(from.problems);
  return {
    redisUrl: read.REDIS_URL,
    namespace: read.REDIS_NAMESPACE,
    get redisCertificate() {
      return redisCertificateIn(read);
    },
    authorities: read.CA_FILE,
    dataDir: resolve(read.DATA_DIR),
  };
}

/**
 * For `attestation …` in a terminal: the folder of endorsements that gatehouse.yml names. Throws
 * ConfigError.
 */
export function loadEndorsementsFolder({
  env = processEnv,
  cwd = process.cwd(),
  terms,
}: From): string | undefined {
  const from = new Environment(env, cwd);
  const opened = openPolicy(from, { cwd, terms });
  if (!opened) throw new ConfigError(from.problems);
  return opened.inForce.policy.attestation.endorsements;
}
