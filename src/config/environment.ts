import { isIP } from "node:net";
import { resolve } from "node:path";
import ipaddr from "ipaddr.js";
import * as z from "zod";
import { codeOf, withHint } from "../errors.ts";
import { editDistance, nearest } from "../text/nearest.ts";
import { ChangingFile } from "./changing-file.ts";
import { areCertificates, isTakenByTls } from "./compute-tls.ts";
import { matching, readAs, webAddress } from "./policy-values.ts";
import { isLoopback } from "./proxy.ts";
import { parseRedisUrl } from "./redis-address.ts";

/** Without the characters that would end the hash tag or need quotes in an ACL. */
const namespaceShape = /^[a-z0-9][a-z0-9-]{0,39}$/i;

export const logLevels = ["debug", "info", "warn", "error"] as const;

/**
 * A text checked by `problemOf`, which returns a sentence or undefined. The sentence follows the
 * variable's name and never repeats a secret.
 */
const held = (problemOf: (text: string) => string | undefined, missing?: string) =>
  z.string(missing).superRefine((text, context) => {
    const message = problemOf(text);
    if (message !== undefined) context.addIssue({ code: "custom", message });
  });

const required = (content: string, problemOf: (text: string) => string | undefined) =>
  held(problemOf, `is missing: set it to ${content}`);

const wholeNumber = (most: number) =>
  readAs(
    (text) => `must be a whole number from 0 to ${most}, and is ${asFound(text)}`,
    (text) => (/^\d{1,6}$/.test(text) && Number(text) <= most ? Number(text) : undefined),
  );

const ipAddress = readAs(
  (text) => `must be an IP address of this machine, or :: for all of them, and is ${asFound(text)}`,
  (text) => (isIP(text) === 0 ? undefined : text),
);

const flag = readAs((text) => `must be 1 or 0, and is ${asFound(text)}`, yesOrNo).default(false);

const withoutSlash = (text: string) => new URL(text).href.replace(/\/+$/, "");

/** Other programs take a proxy without a scheme for one that speaks HTTP, so this one does, too. */
const proxy = z
  .string()
  .transform((text) => text.replace(/^(?=[\w.-]+:\d+\/?$)/, "http://"))
  .pipe(webAddress("must be the address of a proxy, like http://proxy.example:3128"))
  .optional();

const pem = (content: string, isReadable: (text: string) => boolean, otherwise: string) =>
  matching(
    /^-----BEGIN [A-Z0-9 ]+-----$/m,
    `must name a file with ${content} in PEM (-----BEGIN …)`,
  )
    .refine(isReadable, otherwise)
    .optional();

const certificates = (content: string) =>
  pem(content, areCertificates, "has a certificate that can't be read, or none");

const privateKey = pem(
  "a private key",
  (key) => isTakenByTls({ key }),
  "has no private key that can be read without a passphrase",
);

/**
 * Schema of every variable. The new content of a file is checked by the same rules as its first
 * content.
 */
const noApi = "must be the address of the API, like https://gatehouse.example";

const variables = z.object({
  SLACK_BOT_TOKEN: required(
    "the bot token (xoxb-…) from OAuth & Permissions in your Slack app",
    (text) => tokenProblem(text, "xoxb-"),
  ),
  SLACK_APP_TOKEN: held(
    (text) => tokenProblem(text, "xapp-"),
    "is missing: set it for Socket Mode (xapp-…), or SLACK_SIGNING_SECRET for HTTP",
  ),
  SLACK_SIGNING_SECRET: held(signingSecretProblem),
  CA_FILE: certificates("the certificates of authorities"),
  SLACK_API_URL: held(addressProblem).default("https://slack.com/api").transform(withoutSlash),
  COMPUTE_API_URL: required("the address of the compute service", addressProblem).transform(
    (text) => withoutSlash(text).replace(/\/v1$/, ""),
  ),
  COMPUTE_API_KEY: required("the API key of the compute service", (text) =>
    isOneWord(text)
      ? undefined
      : "has white space or invalid characters in it: it must be one word of ASCII characters",
  ),
  COMPUTE_CA_FILE: certificates("the certificates of authorities"),
  COMPUTE_CLIENT_CERT_FILE: certificates("a certificate and those that signed it"),
  COMPUTE_CLIENT_KEY_FILE: privateKey,
  /** `true`, `false`, or the ranges of addresses that are allowed, like `10.20.0.0/16,fd00::/8`. */
  COMPUTE_ALLOW_PRIVATE: readAs(
    (text) =>
      `must be 1, 0, or ranges of addresses like 10.20.0.0/16,fd00::/8, and has ${asFound(rangesIn(text).find((range) => !isRange(range)) ?? "")}`,
    (text) => yesOrNo(text) ?? (rangesIn(text).every(isRange) ? rangesIn(text) : undefined),
  ).default(false),
  HTTPS_PROXY: proxy,
  HTTP_PROXY: proxy,
  NO_PROXY: z.string().default(""),
  REDIS_URL: required("the address of Redis, like redis://localhost:6379", redisProblem),
  REDIS_CERT_FILE: certificates("a certificate and those that signed it"),
  REDIS_KEY_FILE: privateKey,
  REDIS_NAMESPACE: matching(
    namespaceShape,
    "must be letters, digits, and hyphens, 40 at most, beginning with a letter or a digit",
  ).default("gatehouse"),
  REDIS_REPLICAS: wholeNumber(5).optional(),
  /** The address of this machine that PORT and API_PORT are bound to. */
  HOST: ipAddress.optional(),
  PORT: wholeNumber(65_535).default(3000),
  OPS_PORT: wholeNumber(65_535).default(3001),
  API_PORT: wholeNumber(65_535).optional(),
  OPS_HOST: ipAddress.default("127.0.0.1"),
  LOG_LEVEL: readAs(
    (text) => {
      const meant = nearest(text, logLevels);
      return `must be one of ${logLevels.join(", ")}, and is ${asFound(text)}${meant === undefined ? "" : `; did you mean ${meant}?`}`;
    },
    (text) => logLevels.find((level) => level === text.toLowerCase()),
  ).default("info"),
  GATEHOUSE_ALLOW_VOLATILE_REDIS: flag,
  DATA_DIR: z.string().default(".gatehouse"),
  GATEHOUSE_WATCH: flag,
  GATEHOUSE_CONFIG: z.string().optional(),
  GATEHOUSE_URL: held(
    (text) => (/^https?:/i.test(text) && URL.canParse(text) ? addressProblem(text) : noApi),
    noApi,
  ),
  GATEHOUSE_TOKEN: held(
    (text) =>
      isOneWord(text)
        ? undefined
        : "must be a token alone: one line, without spaces or other characters that no token has",
    "must be the token of a service, or name its file by GATEHOUSE_TOKEN_FILE",
  ),
});

export type Variables = z.output<typeof variables>;
export type VariableName = keyof Variables;
export const variableNames = variables.keyof().options;
/** Variables of programs that call the API. Gatehouse's own processes don't read them. */
export const callerNames = ["GATEHOUSE_URL", "GATEHOUSE_TOKEN"] as const;

/**
 * Secrets that may come from a file named by `NAME_FILE`, which is how Docker and Kubernetes pass
 * them.
 */
const secretNames: ReadonlySet<string> = new Set<VariableName>([
  "SLACK_BOT_TOKEN",
  "SLACK_APP_TOKEN",
  "SLACK_SIGNING_SECRET",
  "COMPUTE_API_KEY",
  "REDIS_URL",
  "GATEHOUSE_TOKEN",
]);

/**
 * Whether other programs set this variable for themselves, and Gatehouse works without it: which
 * hosts are reached without the proxy, and what Kubernetes sets for a service that is called `api`
 * or `ops` (`API_PORT=tcp://…`). Such a variable never prevents a start; a problem with it is only a
 * warning.
 */
const isOfOthers = (variable: VariableName, text = "") =>
  variable === "NO_PROXY" || isOfKubernetes(variable, text);

const isOfKubernetes = (variable: string, text: string) =>
  variable.endsWith("_PORT") && /^(tcp|udp|sctp):\/\//.test(text);

export type Env = Readonly<Record<string, string | undefined>>;

/** The environment variables of a process. An empty variable counts as not set. */
export class Environment {
  /** Problems as `NAME: what is wrong`. */
  readonly problems: string[] = [];
  /** Problems with variables that Gatehouse works without, in the same form. */
  readonly warnings: string[] = [];
  /**
   * Files that may change, by the variable whose value they hold: COMPUTE_API_KEY, COMPUTE_CA_FILE.
   */
  readonly files = new Map<string, ChangingFile>();
  readonly #env: Env;
  readonly #cwd: string;

  constructor(env: Env, cwd = process.cwd()) {
    this.#env = env;
    this.#cwd = cwd;
  }

  /** Whether the variable, or the one that names its file, is set. */
  mentions(name: VariableName): boolean {
    return this.#text(name) !== undefined || this.#text(`${name}_FILE`) !== undefined;
  }

  /**
   * Reads and checks these variables. A value that comes from a file is read again at each use,
   * because the file may have changed. A variable with a problem is undefined here whatever its
   * type says; the problem is in `problems`. A variable of other programs then has its default, and
   * the problem is in `warnings`.
   */
  readVariables<Name extends VariableName>(...names: readonly Name[]): Pick<Variables, Name> {
    const read: Partial<Variables> = {};
    for (const name of names) {
      const { variable, text, problem } = this.#find(name);
      const rule = variables.shape[name];
      const problemOf = (value?: string) =>
        quotesProblem(value) ?? rule.safeParse(value).error?.issues[0]?.message;
      const file = this.files.get(name);
      if (file) file.problemOf = problemOf;
      const sentence = problem ?? problemOf(text);
      if (sentence === undefined)
        Object.defineProperty(read, name, { get: () => rule.parse(file ? file.text : text) });
      else if (!isOfOthers(name, text)) this.problems.push(`${variable}: ${sentence}`);
      else {
        this.warnings.push(`${variable}: ${sentence}`);
        Object.defineProperty(read, name, { value: rule.safeParse(undefined).data });
      }
    }
    return read as Pick<Variables, Name>;
  }

  #text(name: string): string | undefined {
    const value = this.#env[name]?.trim();
    return value === "" ? undefined : value;
  }

  /**
   * The secrets in a variable that gatehouse.yml names, or in the file that `NAME_FILE` names.
   * There may be two, separated by white space, while one replaces the other. With a problem
   * (`NAME: what is wrong`) there are none.
   */
  secrets(name: string): { secrets: readonly string[]; problem?: string } {
    const setting = this.#find(name, { isSecret: true });
    const secrets = wordsIn(setting.text);
    const file = this.files.get(name);
    if (file) file.problemOf = secretsProblem;
    const wrong =
      setting.problem ??
      (secrets.length === 0 ? `is missing: set it, or ${name}_FILE` : undefined) ??
      secretsProblem(setting.text);
    return wrong === undefined
      ? { secrets }
      : { secrets: [], problem: `${setting.variable}: ${wrong}` };
  }

  /**
   * Adds what is wrong with variables that nobody reads and whose names differ by a typo from one
   * that isn't set: by one letter, or by our prefix (`GATEHOUSE_LOG_LEVEL`). A name without `_`
   * (`DATADIR`) may be another program's, so it is a warning. `API_HOST` certainly is, and no typo of
   * API_PORT or OPS_HOST, and Kubernetes sets GATEHOUSE_API_PORT for a service of that name.
   */
  noteMistyped(): void {
    const known = variableNames.flatMap((name) =>
      secretNames.has(name) ? [name, `${name}_FILE`] : [name],
    );
    for (const name of Object.keys(this.#env)) {
      const text = this.#text(name);
      if (text === undefined || known.includes(name) || isOfKubernetes(name, text)) continue;
      if (!/^(CA|SLACK|COMPUTE|REDIS|OPS|API|GATEHOUSE|DATA|LOG)(?=_|[A-Z])/.test(name)) continue;
      const isPlain = !name.includes("_");
      const meant =
        known.find((variable) => variable.includes("_") && joined(variable) === joined(name)) ??
        (isPlain ? undefined : known.find((variable) => editDistance(name, variable, 1) <= 1));
      if (meant === undefined || this.#text(meant) !== undefined) continue;
      const sentence = `${name}: is not a Gatehouse variable; did you mean ${meant}?`;
      (isPlain ? this.warnings : this.problems).push(sentence);
    }
  }

  /**
   * The text of a variable, or the problem that prevents reading it, and the name of the variable
   * that it is about.
   */
  #find(
    name: string,
    { isSecret = secretNames.has(name) }: { isSecret?: boolean } = {},
  ): { variable: string; text?: string | undefined; problem?: string } {
    // Proxy variables may be written in lower case, as in other programs; the lower-case one then
    // wins.
    const small = name.endsWith("_PROXY") ? name.toLowerCase() : name;
    const variable = this.#text(small) === undefined ? name : small;
    const text = this.#text(variable);
    const naming = name.endsWith("_FILE") ? name : `${name}_FILE`;
    const isFromFile = naming === name || isSecret;
    const path = isFromFile ? this.#text(naming) : undefined;
    if (path === undefined) return { variable, text };
    if (naming !== name && text !== undefined)
      return { variable, problem: `is set, and so is ${naming}: keep one of them` };
    const quoted = quotesProblem(path);
    if (quoted !== undefined) return { variable: naming, problem: quoted };
    try {
      const file = this.files.get(name) ?? new ChangingFile(resolve(this.#cwd, path));
      this.files.set(name, file);
      if (file.text !== "") return { variable: naming, text: file.text };
      return { variable: naming, problem: "names an empty file" };
    } catch (error) {
      return { variable: naming, problem: `names a file that can't be read (${codeOf(error)})` };
    }
  }
}

/**
 * Quotes a value in a problem. A long value may be a secret in the wrong place, so only its length
 * is given.
 */
function asFound(text: string): string {
  return text.length <= 20 && !text.startsWith("xox") ? `"${text}"` : `${text.length} characters`;
}

/** A name without `_` and without the prefix that only some of our variables have. */
const joined = (name: string) => name.replace(/^GATEHOUSE_?/, "").replaceAll("_", "");

const wordsIn = (text = "") => text.split(/\s+/).filter((word) => word !== "");

/**
 * Anyone may call a source's address as often as the rate limits allow, so a secret must be too
 * long to guess.
 */
const leastSecret = 12;

/** Why these can't be the secrets of a source. The sentence doesn't repeat them. */
function secretsProblem(text = ""): string | undefined {
  const secrets = wordsIn(text);
  if (secrets.length > 2)
    return `has ${secrets.length} words: a secret has no white space, and two are the most`;
  const quoted =
    quotesProblem(text) ?? secrets.map(quotesProblem).find((problem) => problem !== undefined);
  if (quoted !== undefined) return quoted;
  const short = secrets.find(({ length }) => length < leastSecret);
  return short === undefined
    ? undefined
    : `has a secret of ${short.length} characters, and ${leastSecret} are the least: make one with openssl rand -hex 32`;
}

/** `docker --env-file`, Kubernetes, and secret files keep quotes as part of the value. */
function quotesProblem(text = ""): string | undefined {
  const isQuoted = text.length > 1 && /^(["']).*\1$/s.test(text);
  return isQuoted ? "is in quotes, which are taken as part of it: remove them" : undefined;
}

function yesOrNo(text: string): boolean | undefined {
  return /^(1|true|yes)$/i.test(text) || (/^(0|false|no)$/i.test(text) ? false : undefined);
}

function isOneWord(text: string): boolean {
  return /^[\u0021-\u007e]+$/.test(text);
}

function rangesIn(text: string): readonly string[] {
  return text.split(",").map((range) => range.trim());
}

function isRange(text: string): boolean {
  // ipaddr.js alone would read 010.0.0.1 as octal.
  return isIP(text.split("/")[0] ?? "") !== 0 && ipaddr.isValidCIDR(text);
}

/**
 * Checks an address that credentials are sent to; http is allowed only for this machine. The
 * sentence never repeats the value.
 */
export function addressProblem(text: string): string | undefined {
  if (!URL.canParse(text)) return "is not an address: it must be like https://host/path";
  const url = new URL(text);
  if (url.protocol !== "https:" && url.protocol !== "http:")
    return `begins with ${asFound(url.protocol)} and must begin with https://`;
  if (url.username !== "" || url.password !== "")
    return "has a user or password in it and must have none";
  if (url.search !== "" || url.hash !== "") return "has a ? or # in it and must have none";
  if (url.protocol === "http:" && !isLoopback(url.hostname)) {
    return "begins with http:// and must begin with https://, because secrets are sent there (http:// is only for this machine: localhost, 127.0.0.1)";
  }
  return undefined;
}

function redisProblem(text: string): string | undefined {
  try {
    parseRedisUrl(text);
    return undefined;
  } catch (error) {
    return withHint(error, "; ");
  }
}

/** Says what kind of text was given in place of a Slack secret, without repeating it. */
function kindOf(text: string): string {
  if (/^(xoxe\.)?xoxb-/.test(text)) return "is a bot token (xoxb-)";
  if (text.startsWith("xapp-")) return "is an app-level token (xapp-)";
  if (/^(xoxe\.)?xoxp-/.test(text)) return "is a user token (xoxp-)";
  if (/^xox[a-z]-/.test(text)) return "is another kind of Slack token";
  if (/^[0-9a-f]{32}$/.test(text)) return "looks like the signing secret";
  return "is not a Slack token";
}

const whereFrom = {
  "xoxb-": "the bot token from OAuth & Permissions belongs here (it begins with xoxb-)",
  "xapp-": "the app-level token from Basic Information belongs here (it begins with xapp-)",
} as const;

/** Why this can't be a token with that prefix. Undefined when it can. */
function tokenProblem(text: string, begin: keyof typeof whereFrom): string | undefined {
  const bare = text.replace(/^xoxe\./, "");
  if (bare.startsWith(begin) && /^\S+$/.test(text)) return undefined;
  const problem = bare.startsWith(begin) ? "has white space in it" : kindOf(text);
  return `${problem}: ${whereFrom[begin]}`;
}

function signingSecretProblem(text: string): string | undefined {
  const wanted = "the signing secret from Basic Information belongs here, as one word";
  if (!isOneWord(text)) return `is not one word: ${wanted}`;
  return /^(xoxe\.)?(xox[a-z]|xapp)-/.test(text) ? `${kindOf(text)}: ${wanted}` : undefined;
}
