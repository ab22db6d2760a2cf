import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, expect, it } from "vitest";
import { loadConfig } from "../../src/config/config.ts";
import { ConfigError } from "../../src/config/config-error.ts";
import { messageOf } from "../../src/errors.ts";
import { scrubText } from "../../src/log/scrub.ts";
import { root } from "../structure/sources.ts";
import { complete } from "./complete.ts";
import { policyTerms } from "../../src/features/index.ts";
const http = { SLACK_APP_TOKEN: "", SLACK_SIGNING_SECRET: "s3cret" };

const folder = mkdtempSync(path.join(tmpdir(), "gatehouse-mistakes-"));
afterAll(() => rmSync(folder, { recursive: true }));

function file(name: string, text: string): string {
  writeFileSync(path.join(folder, name), text);
  return path.join(folder, name);
}

const certificate = (name: string) =>
  path.join(root, "test/fleet/compute/certificates", `${name}.pem`);
const emptyFile = file("empty", "\n");
const wrongFile = file("wrong", "hunter22 is wrong");
const prose = file("prose", "hunter22 is no PEM\n");
const broken = file("broken", "-----BEGIN CERTIFICATE-----\nhunter22\n-----END CERTIFICATE-----\n");
const certAlone = file(
  "cert.pem",
  readFileSync(certificate("localhost"), "utf8").replace(
    /-----BEGIN PRIVATE KEY[^]*?END PRIVATE KEY-----/,
    "",
  ),
);

type Env = Record<string, string>;

/**
 * Each mistake alone, in an environment that is right otherwise: what stands there, and the whole sentence. A secret is
 * "hunter22" here, and no sentence repeats it.
 */
const overTls = { REDIS_URL: "rediss://localhost:6379" };

const mistakes: [variable: string, env: Env, sentence: string][] = [
  [
    "SLACK_BOT_TOKEN",
    { SLACK_BOT_TOKEN: "" },
    "is missing: set it to the bot token (xoxb-…) from OAuth & Permissions in your Slack app",
  ],
  [
    "SLACK_BOT_TOKEN",
    { SLACK_BOT_TOKEN: "xapp-hunter22" },
    "is an app-level token (xapp-): the bot token from OAuth & Permissions belongs here (it begins with xoxb-)",
  ],
  [
    "SLACK_BOT_TOKEN",
    { SLACK_BOT_TOKEN: "xoxp-hunter22" },
    "is a user token (xoxp-): the bot token",
  ],
  [
    "SLACK_BOT_TOKEN",
    { SLACK_BOT_TOKEN: "xoxs-hunter22" },
    "is another kind of Slack token: the bot token",
  ],
  [
    "SLACK_BOT_TOKEN",
    { SLACK_BOT_TOKEN: "xoxb-hunter22 x" },
    "has white space in it: the bot token",
  ],
  [
    "SLACK_BOT_TOKEN",
    { SLACK_BOT_TOKEN: "hunter22hunter22hunter22" },
    "is not a Slack token: the bot token",
  ],
  [
    "SLACK_BOT_TOKEN",
    { SLACK_BOT_TOKEN_FILE: emptyFile },
    "is set, and so is SLACK_BOT_TOKEN_FILE: keep one of them",
  ],
  [
    "SLACK_APP_TOKEN",
    { SLACK_APP_TOKEN: "xoxb-hunter22" },
    "is a bot token (xoxb-): the app-level token from Basic Information belongs here (it begins with xapp-)",
  ],
  [
    "SLACK_APP_TOKEN",
    { SLACK_APP_TOKEN: "0123456789abcdef0123456789abcdef" },
    "looks like the signing secret: the app-level token",
  ],
  [
    "SLACK_APP_TOKEN",
    { SLACK_APP_TOKEN: "" },
    "is missing: set it for Socket Mode (xapp-…), or SLACK_SIGNING_SECRET for HTTP",
  ],
  [
    "SLACK_SIGNING_SECRET",
    { ...http, SLACK_SIGNING_SECRET: "xoxb-hunter22" },
    "is a bot token (xoxb-): the signing secret from Basic Information belongs here, as one word",
  ],
  [
    "SLACK_SIGNING_SECRET",
    { ...http, SLACK_SIGNING_SECRET: "hunter22 two" },
    "is not one word: the signing secret",
  ],
  [
    "SLACK_API_URL",
    { SLACK_API_URL: "https://u:hunter22@h/api" },
    "has a user or password in it and must have none",
  ],
  [
    "SLACK_API_URL",
    { SLACK_API_URL: "https://h/api?hunter22" },
    "has a ? or # in it and must have none",
  ],
  [
    "COMPUTE_API_URL",
    { COMPUTE_API_URL: "" },
    "is missing: set it to the address of the compute service",
  ],
  [
    "COMPUTE_API_URL",
    { COMPUTE_API_URL: "hunter22" },
    "is not an address: it must be like https://host/path",
  ],
  [
    "COMPUTE_API_URL",
    { COMPUTE_API_URL: "ftp://hunter22" },
    'begins with "ftp:" and must begin with https://',
  ],
  [
    "COMPUTE_API_URL",
    { COMPUTE_API_URL: "http://hunter22.example" },
    "begins with http:// and must begin with https://, because secrets are sent there",
  ],
  [
    "COMPUTE_API_KEY",
    { COMPUTE_API_KEY: "" },
    "is missing: set it to the API key of the compute service",
  ],
  [
    "COMPUTE_API_KEY",
    { COMPUTE_API_KEY: "hunter22 two" },
    "has white space or invalid characters in it: it must be one word of ASCII characters",
  ],
  [
    "COMPUTE_API_KEY",
    { COMPUTE_API_KEY: "hünter22" },
    "has white space or invalid characters in it",
  ],
  [
    "COMPUTE_API_KEY_FILE",
    { COMPUTE_API_KEY: "", COMPUTE_API_KEY_FILE: wrongFile },
    "has white space or invalid characters in it",
  ],
  ["REDIS_URL_FILE", { REDIS_URL: "", REDIS_URL_FILE: wrongFile }, "isn't an address of Redis"],
  [
    "COMPUTE_API_KEY_FILE",
    { COMPUTE_API_KEY: "", COMPUTE_API_KEY_FILE: "/no/such" },
    "names a file that can't be read (ENOENT)",
  ],
  [
    "COMPUTE_API_KEY_FILE",
    { COMPUTE_API_KEY: "", COMPUTE_API_KEY_FILE: folder },
    "names a file that can't be read (EISDIR)",
  ],
  [
    "COMPUTE_API_KEY_FILE",
    { COMPUTE_API_KEY: "", COMPUTE_API_KEY_FILE: emptyFile },
    "names an empty file",
  ],
  ["COMPUTE_CA_FILE", { COMPUTE_CA_FILE: "/no/such" }, "names a file that can't be read (ENOENT)"],
  [
    "COMPUTE_CA_FILE",
    { COMPUTE_CA_FILE: prose },
    "must name a file with the certificates of authorities in PEM (-----BEGIN …)",
  ],
  ["COMPUTE_CA_FILE", { COMPUTE_CA_FILE: broken }, "has a certificate that can't be read, or none"],
  [
    "COMPUTE_CLIENT_CERT_FILE",
    { COMPUTE_CLIENT_KEY_FILE: certificate("localhost") },
    "is missing, and COMPUTE_CLIENT_KEY_FILE is set",
  ],
  [
    "COMPUTE_CLIENT_KEY_FILE",
    { COMPUTE_CLIENT_CERT_FILE: certificate("localhost") },
    "is missing, and COMPUTE_CLIENT_CERT_FILE is set",
  ],
  [
    "COMPUTE_CLIENT_CERT_FILE",
    { COMPUTE_CLIENT_CERT_FILE: broken, COMPUTE_CLIENT_KEY_FILE: certificate("localhost") },
    "has a certificate that can't be read, or none",
  ],
  [
    "COMPUTE_CLIENT_KEY_FILE",
    { COMPUTE_CLIENT_CERT_FILE: certAlone, COMPUTE_CLIENT_KEY_FILE: certAlone },
    "has no private key that can be read without a passphrase",
  ],
  [
    "COMPUTE_CLIENT_KEY_FILE",
    {
      COMPUTE_CLIENT_CERT_FILE: certificate("localhost"),
      COMPUTE_CLIENT_KEY_FILE: certificate("other-host"),
    },
    "is not the key of COMPUTE_CLIENT_CERT_FILE",
  ],
  [
    "COMPUTE_ALLOW_PRIVATE",
    { COMPUTE_ALLOW_PRIVATE: "10.0.0.0/16, 10.1.0.0" },
    'must be 1, 0, or ranges of addresses like 10.20.0.0/16,fd00::/8, and has "10.1.0.0"',
  ],
  ["COMPUTE_ALLOW_PRIVATE", { COMPUTE_ALLOW_PRIVATE: "10.0.0.0/33" }, 'and has "10.0.0.0/33"'],
  ["COMPUTE_ALLOW_PRIVATE", { COMPUTE_ALLOW_PRIVATE: "::010.0.0.1/120" }, "ranges of addresses"],
  [
    "HTTPS_PROXY",
    { HTTPS_PROXY: "proxy example" },
    "must be the address of a proxy, like http://proxy.example:3128",
  ],
  [
    "https_proxy",
    { https_proxy: "socks5://u:hunter22@proxy.example" },
    "must be the address of a proxy, like http://proxy.example:3128",
  ],
  [
    "HTTP_PROXY",
    { HTTP_PROXY: "hunter22" },
    "must be the address of a proxy, like http://proxy.example:3128",
  ],
  [
    "REDIS_URL",
    { REDIS_URL: "" },
    "is missing: set it to the address of Redis, like redis://localhost:6379",
  ],
  [
    "REDIS_URL",
    { REDIS_URL: "http://hunter22" },
    "isn't an address of Redis; write redis://host:6379",
  ],
  [
    "REDIS_URL",
    { REDIS_URL: "redis://u:hunter22#x@h:6379" },
    "the user or password contains a #, which ends it in an address; write # as %23",
  ],
  [
    "REDIS_URL",
    { REDIS_URL: "rediss://u:hunter22/x@h,g" },
    "the user or password contains a /, which ends it in an address; write / as %2F",
  ],
  [
    "REDIS_URL",
    { REDIS_URL: "redis-sentinel://u:hunter22?x@h:26379/primary" },
    "the user or password contains a ?, which ends it in an address; write ? as %3F",
  ],
  [
    "REDIS_URL",
    { REDIS_URL: "redis://:hunter22%@h" },
    "the password contains a % without two hex digits after it; write % as %25",
  ],
  [
    "REDIS_URL",
    { REDIS_URL: "redis://a,redis://b/3" },
    "a Cluster has only database 0; omit the number at the end",
  ],
  ["CA_FILE", { CA_FILE: "nowhere.pem" }, "names a file that can't be read (ENOENT)"],
  ["CA_FILE", { CA_FILE: broken }, "has a certificate that can't be read, or none"],
  ["CA_FIEL", { CA_FIEL: "ca.pem" }, "is not a Gatehouse variable; did you mean CA_FILE?"],
  [
    "REDIS_CERT_FILE",
    { ...overTls, REDIS_KEY_FILE: certificate("localhost") },
    "is missing, and REDIS_KEY_FILE is set",
  ],
  [
    "REDIS_CERT_FILE",
    { REDIS_CERT_FILE: certificate("localhost"), REDIS_KEY_FILE: certificate("localhost") },
    "is set, and REDIS_URL isn't rediss://, so nobody asks for a certificate",
  ],
  [
    "REDIS_KEY_FILE",
    {
      ...overTls,
      REDIS_CERT_FILE: certificate("localhost"),
      REDIS_KEY_FILE: certificate("other-host"),
    },
    "is not the key of REDIS_CERT_FILE",
  ],
  [
    "HOST",
    { HOST: "gatehouse.example" },
    'must be an IP address of this machine, or :: for all of them, and is "gatehouse.example"',
  ],
  ["REDIS_NAMESPACE", { REDIS_NAMESPACE: "a}b" }, "must be letters, digits, and hyphens"],
  ["REDIS_NAMESPACE", { REDIS_NAMESPACE: "-a" }, "must be letters, digits, and hyphens"],
  ["REDIS_NAMESPACE", { REDIS_NAMESPACE: "a".repeat(41) }, "40 at most"],
  ["REDIS_REPLICAS", { REDIS_REPLICAS: "all" }, 'must be a whole number from 0 to 5, and is "all"'],
  ["PORT", { PORT: "70000" }, 'must be a whole number from 0 to 65535, and is "70000"'],
  ["PORT", { PORT: "1e3" }, 'and is "1e3"'],
  ["PORT", { PORT: "https://u:hunter22@compute.example" }, "and is 34 characters"],
  [
    "OPS_PORT",
    { ...http, OPS_PORT: "3000" },
    "must not be 3000, which is PORT: the world reaches that one",
  ],
  ["API_PORT", { API_PORT: "open" }, 'must be a whole number from 0 to 65535, and is "open"'],
  ["API_PORT", { API_PORT: "3001" }, "must not be 3001, which another port of this process is"],
  ["API_PROT", { API_PROT: "9000" }, "is not a Gatehouse variable; did you mean API_PORT?"],
  [
    "OPS_HOST",
    { OPS_HOST: "localhost" },
    'must be an IP address of this machine, or :: for all of them, and is "localhost"',
  ],
  ["OPS_PROT", { OPS_PROT: "9000" }, "is not a Gatehouse variable; did you mean OPS_PORT?"],
  ["GATEHOUSE_CONFG", { GATEHOUSE_CONFG: "a.yml" }, "did you mean GATEHOUSE_CONFIG?"],
  ["GATEHOUSE_CONFIG", { GATEHOUSE_CONFIG: "other.yml" }, "other.yml can't be read (ENOENT)"],
  ["GATEHOUSE_CONFIG", { GATEHOUSE_CONFIG: folder }, "can't be read (EISDIR)"],
  [
    "GATEHOUSE_CONFIG",
    { GATEHOUSE_CONFIG: file("bad.yml", "acess: {}\n") },
    "bad.yml line 1: acess isn't known; did you mean access?",
  ],
  [
    "LOG_LEVEL",
    { LOG_LEVEL: "eror" },
    'must be one of debug, info, warn, error, and is "eror"; did you mean error?',
  ],
  [
    "GATEHOUSE_ALLOW_VOLATILE_REDIS",
    { GATEHOUSE_ALLOW_VOLATILE_REDIS: "maybe" },
    'must be 1 or 0, and is "maybe"',
  ],
  ["GATEHOUSE_WATCH", { GATEHOUSE_WATCH: "daily" }, 'must be 1 or 0, and is "daily"'],
];

it.each(mistakes)("%s: %o", (variable, env, sentence) => {
  const load = () =>
    loadConfig({ env: { ...complete, ...env }, role: "all", cwd: folder, terms: policyTerms });
  expect(load).toThrow(ConfigError);
  try {
    load();
  } catch (error) {
    const { problems } = error as ConfigError;
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(new RegExp(`^${variable}: `));
    expect(problems[0]).toContain(sentence);
    expect(problems[0]).not.toMatch(/hunter22|hünter22/);
    // The log has the whole sentence, too: it names secrets and holds none
    expect(scrubText(messageOf(error))).toBe(messageOf(error));
  }
});

it("every variable has its mistakes here, and stands in .env.example", () => {
  const installing = readFileSync(path.join(root, "docs/install.md"), "utf8");
  const example = readFileSync(path.join(root, ".env.example"), "utf8");
  const named = [...installing.matchAll(/^\| `([A-Z_]+)`(?:, `([A-Z_]+)`)? *\|/gm)]
    .flatMap(([, ...names]) => names)
    .filter((name): name is string => name !== undefined);
  expect(named.length).toBeGreaterThan(15);
  const told = new Set(mistakes.map(([variable]) => variable));
  // No text for these prevents a start; that the directory can't be used is tried with processes (test/operate)
  const free = new Set(["DATA_DIR", "NO_PROXY"]);
  expect(named.filter((name) => !told.has(name) && !free.has(name))).toEqual([]);
  for (const name of named) expect(example).toMatch(new RegExp(`^(# )?${name}=`, "m"));
});
