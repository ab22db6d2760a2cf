import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { resolve } from "node:path";
import { nearest } from "./nearest.ts";

/** Secrets that may come from a file named by `NAME_FILE`, as Docker and Kubernetes hand them over. */
const secretNames = new Set([
  "SLACK_BOT_TOKEN",
  "SLACK_APP_TOKEN",
  "SLACK_SIGNING_SECRET",
  "COMPUTE_API_KEY",
  "REDIS_URL",
]);

/** Reads variables one by one and remembers everything that is wrong. An empty variable counts as not set. */
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

  /** Whether anything was set for this secret, usable or not. */
  mentions(name: string): boolean {
    return this.text(name) !== undefined || this.text(`${name}_FILE`) !== undefined;
  }

  /** The value of `NAME`, or the content of the file that `NAME_FILE` names. */
  secret(name: string): string | undefined {
    const value = this.text(name);
    const file = this.text(`${name}_FILE`);
    if (file === undefined) return value;
    if (value !== undefined) {
      this.problem(name, `is set, and ${name}_FILE too: keep one of them`);
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
      const code = error instanceof Error && "code" in error ? String(error.code) : "unknown";
      this.problem(name, `names a file that can't be read (${code})`);
    }
    return undefined;
  }

  /** Empty when it is missing, which is then a problem already. */
  required(name: string, whatItIs: string): string {
    const value = secretNames.has(name) ? this.secret(name) : this.text(name);
    if (value === undefined && !this.#isTold(name))
      this.problem(name, `is missing: set it to ${whatItIs}`);
    return value ?? "";
  }

  #isTold(name: string): boolean {
    return this.problems.some(
      (problem) => problem.startsWith(`${name}:`) || problem.startsWith(`${name}_FILE:`),
    );
  }

  check(name: string, value: string, pattern: RegExp, sentence: string): void {
    if (value !== "" && !pattern.test(value)) this.problem(name, sentence);
  }

  /** An http(s) address without a slash at its end. `fallback` undefined means that it is required. */
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
    this.problem(name, `should be a whole number from 0 to ${most}`);
    return fallback;
  }

  choice<const T extends string>(name: string, known: readonly T[], fallback: T): T {
    const text = this.text(name)?.toLowerCase();
    const chosen = known.find((word) => word === (text ?? fallback));
    if (chosen !== undefined) return chosen;
    const meant = nearest(text ?? "", known);
    this.problem(
      name,
      `should be one of ${known.join(", ")}${meant === undefined ? "" : `; did you mean ${meant}?`}`,
    );
    return fallback;
  }

  flag(name: string): boolean {
    const text = this.text(name)?.toLowerCase();
    if (text !== undefined && !/^(1|0|true|false|yes|no)$/.test(text))
      this.problem(name, "should be 1 or 0");
    return text !== undefined && /^(1|true|yes)$/.test(text);
  }
}

/** Credentials go to these addresses, so in the open only to this machine. Pure; the value isn't repeated. */
export function addressProblem(text: string): string | undefined {
  if (!URL.canParse(text)) return "should be an address like https://host/path";
  const url = new URL(text);
  if (url.protocol !== "https:" && url.protocol !== "http:") return "should begin with https://";
  if (url.username !== "" || url.password !== "") return "should hold no user or password";
  if (url.search !== "" || url.hash !== "") return "should end before any ? or #";
  if (url.protocol === "http:" && !isLoopback(url.hostname)) {
    return "should begin with https://, because secrets are sent there (http:// is only for this machine: localhost, 127.0.0.1)";
  }
  return undefined;
}

function isLoopback(host: string): boolean {
  if (host === "[::1]" || host === "localhost" || host.endsWith(".localhost")) return true;
  return isIP(host) === 4 && host.startsWith("127.");
}
