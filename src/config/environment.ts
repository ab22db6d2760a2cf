import { BlockList, isIP } from "node:net";
import { resolve } from "node:path";
import { codeOf } from "../errors.ts";
import { nearest } from "../text/nearest.ts";
import { ChangingFile } from "./changing-file.ts";

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
  /** What was read from files that may change, by the variable that it stands for: COMPUTE_API_KEY, COMPUTE_CA_FILE. */
  readonly files = new Map<string, ChangingFile>();
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
    return this.#fromFile(name, `${name}_FILE`, file);
  }

  /** The content of the file that `NAME` names. */
  content(name: string): string | undefined {
    const file = this.text(name);
    return file === undefined ? undefined : this.#fromFile(name, name, file);
  }

  #fromFile(name: string, variable: string, path: string): string | undefined {
    try {
      const file = new ChangingFile(resolve(this.#cwd, path));
      this.files.set(name, file);
      if (file.text !== "") return file.text;
      this.problem(variable, "names an empty file");
    } catch (error) {
      this.problem(variable, `names a file that can't be read (${codeOf(error)})`);
    }
    return undefined;
  }

  /** What `NAME` is now: its file may have changed since `first` was read. */
  now(name: string, first: string): string {
    return this.files.get(name)?.text ?? first;
  }

  /** Empty when it is missing, which is reported. */
  required(name: string, whatItIs: string): string {
    const isSecret = secretNames.has(name);
    const value = isSecret ? this.secret(name) : this.text(name);
    if (value === undefined && !(isSecret && this.mentions(name)))
      this.problem(name, `is missing: set it to ${whatItIs}`);
    return value ?? "";
  }

  /** The sentence must not repeat the value. A file's new content is held to it, too. */
  check(name: string, value: string, pattern: RegExp, sentence: string): void {
    this.holdTo(name, value, (text) => (pattern.test(text) ? undefined : sentence));
  }

  /** As `check`, with any rule: a sentence, or undefined. */
  holdTo(name: string, value: string, problemOf: (text: string) => string | undefined): void {
    const file = this.files.get(name);
    if (file) file.problemOf = problemOf;
    const sentence = value === "" ? undefined : problemOf(value);
    if (sentence !== undefined) this.problem(name, sentence);
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
    this.problem(name, `must be a whole number from 0 to ${most}, and is ${asFound(text)}`);
    return fallback;
  }

  choice<const T extends string>(name: string, known: readonly T[], fallback: T): T {
    const text = this.text(name)?.toLowerCase();
    const chosen = known.find((word) => word === (text ?? fallback));
    if (chosen !== undefined) return chosen;
    const meant = nearest(text ?? "", known);
    this.problem(
      name,
      `must be one of ${known.join(", ")}, and is ${asFound(text ?? "")}${meant === undefined ? "" : `; did you mean ${meant}?`}`,
    );
    return fallback;
  }

  /** Yes, no, or the ranges of addresses for which it is yes, like `10.20.0.0/16,fd00::/8`. */
  ranges(name: string): boolean | readonly string[] {
    const text = this.text(name);
    if (text === undefined || isYesOrNo(text)) return this.flag(name);
    const ranges = text.split(",").map((range) => range.trim());
    const wrong = ranges.find((range) => !isRange(range));
    if (wrong === undefined) return ranges;
    this.problem(
      name,
      `must be 1, 0, or ranges of addresses like 10.20.0.0/16,fd00::/8, and has ${asFound(wrong)}`,
    );
    return false;
  }

  flag(name: string): boolean {
    const text = this.text(name)?.toLowerCase();
    if (text !== undefined && !isYesOrNo(text))
      this.problem(name, `must be 1 or 0, and is ${asFound(text)}`);
    return text !== undefined && /^(1|true|yes)$/.test(text);
  }
}

/** What stands where something else is expected. Long ones may be a secret in the wrong place. */
export function asFound(text: string): string {
  return text.length <= 20 && !text.startsWith("xox") ? `"${text}"` : `${text.length} characters`;
}

const isYesOrNo = (text: string) => /^(1|0|true|false|yes|no)$/i.test(text);

function isRange(text: string): boolean {
  const [net = "", bits = "", ...rest] = text.split("/");
  if (rest.length > 0 || !/^\d{1,3}$/.test(bits)) return false;
  try {
    new BlockList().addSubnet(net, Number(bits), isIP(net) === 6 ? "ipv6" : "ipv4");
    return true;
  } catch {
    return false;
  }
}

/** Credentials are sent there, so http is only for this machine. Never repeats the value. */
export function addressProblem(text: string): string | undefined {
  if (!URL.canParse(text)) return "is no address: it must be like https://host/path";
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

function isLoopback(host: string): boolean {
  if (host === "[::1]" || host === "localhost" || host.endsWith(".localhost")) return true;
  return isIP(host) === 4 && host.startsWith("127.");
}
