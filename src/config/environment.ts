import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { resolve } from "node:path";
import { nearest } from "../text/nearest.ts";

/** Secrets that may come from a file named by `NAME_FILE`, as Docker and Kubernetes hand them over. */
const secretNames = new Set([
  "SLACK_BOT_TOKEN",
  "SLACK_APP_TOKEN",
  "SLACK_SIGNING_SECRET",
  "COMPUTE_API_KEY",
  "REDIS_URL",
  "OTEL_EXPORTER_OTLP_HEADERS",
]);

/** Reads variables and collects all problems. An empty variable counts as not set. */
export class Environment {
  readonly problems: string[] = [];
  readonly #env: Readonly<Record<string, string | undefined>>;
  readonly #cwd: string;

  constructor(env: Readonly<Record<string, string | undefined>>, cwd: string) {
    this.#env = env;
    this.#cwd = cwd;
  }

  problem(name: string, sentence: string): void {
    this.problems.push(`${name}: ${sentence}`);
  }

  text(name: string): string | undefined {
    const value = this.#env[name]?.trim();
    return value === "" ? undefined : value;
  }

  mentions(name: string): boolean {
    return this.text(name) !== undefined || this.text(`${name}_FILE`) !== undefined;
  }

  /** The value of `NAME`, or the content of the file `NAME_FILE`. */
  secret(name: string): string | undefined {
    const value = this.text(name);
    const file = this.text(`${name}_FILE`);
    if (file === undefined) return value;
    if (value !== undefined) {
      this.problem(name, `is set, and so is ${name}_FILE: keep one of them`);
      return undefined;
    }
    return this.#fromFile(`${name}_FILE`, file);
  }

  #fromFile(name: string, file: string): string | undefined {
    try {
      const content = readFileSync(resolve(this.#cwd, file), "utf8").trim();
      if (content !== "") return content;
      this.problem(name, "names an empty file");
    } catch (error) {
      this.problem(name, `names a file that can't be read (${codeOf(error)})`);
    }
    return undefined;
  }

  /** Empty when it is missing, which is reported. */
  required(name: string, whatItIs: string): string {
    const isSecret = secretNames.has(name);
    const value = isSecret ? this.secret(name) : this.text(name);
    if (value === undefined && !(isSecret && this.mentions(name)))
      this.problem(name, `is missing: set it to ${whatItIs}`);
    return value ?? "";
  }

  check(name: string, value: string, pattern: RegExp, sentence: string): void {
    if (value !== "" && !pattern.test(value)) this.problem(name, sentence);
  }

  /** An http(s) address without a final slash; required without `fallback`. */
  address(name: string, fallback: string | undefined, whatItIs = "an address"): string {
    const text =
      fallback === undefined ? this.required(name, whatItIs) : (this.text(name) ?? fallback);
    if (text === "") return "";
    const sentence = addressProblem(text);
    if (sentence !== undefined) this.problem(name, sentence);
    return sentence === undefined ? new URL(text).href.replace(/\/+$/, "") : "";
  }

  wholeNumber(name: string, fallback: number, most: number): number {
    const text = this.text(name);
    if (text === undefined) return fallback;
    if (/^\d{1,6}$/.test(text) && Number(text) <= most) return Number(text);
    this.problem(name, `must be a whole number from 0 to ${most}`);
    return fallback;
  }

  choice<const T extends string>(name: string, known: readonly T[], fallback: T): T {
    const text = this.text(name)?.toLowerCase();
    const chosen = known.find((word) => word === (text ?? fallback));
    if (chosen !== undefined) return chosen;
    const meant = nearest(text ?? "", known);
    this.problem(
      name,
      `must be one of ${known.join(", ")}${meant === undefined ? "" : `; did you mean ${meant}?`}`,
    );
    return fallback;
  }

  flag(name: string): boolean {
    const text = this.text(name)?.toLowerCase();
    if (text !== undefined && !/^(1|0|true|false|yes|no)$/.test(text))
      this.problem(name, "must be 1 or 0");
    return text !== undefined && /^(1|true|yes)$/.test(text);
  }
}

/** Credentials are sent there, so http is only for this machine. Never repeats the value. */
export function addressProblem(text: string): string | undefined {
  if (!URL.canParse(text)) return "must be an address like https://host/path";
  const url = new URL(text);
  if (url.protocol !== "https:" && url.protocol !== "http:") return "must begin with https://";
  if (url.username !== "" || url.password !== "") return "must contain no user or password";
  if (url.search !== "" || url.hash !== "") return "must contain no ? or #";
  if (url.protocol === "http:" && !isLoopback(url.hostname)) {
    return "must begin with https://, because secrets are sent there (http:// is only for this machine: localhost, 127.0.0.1)";
  }
  return undefined;
}

/** The code of a file system error, such as ENOENT. */
export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown";
}

function isLoopback(host: string): boolean {
  if (host === "[::1]" || host === "localhost" || host.endsWith(".localhost")) return true;
  return isIP(host) === 4 && host.startsWith("127.");
}
