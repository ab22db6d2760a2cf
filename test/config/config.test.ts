import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadApiAccess } from "../../src/config/api-access.ts";
import {
  loadConfig,
  loadEndorsementsFolder,
  type Config,
  type Role,
} from "../../src/config/config.ts";
import { ConfigError } from "../../src/config/config-error.ts";
import { addressProblem } from "../../src/config/environment.ts";
import { root } from "../structure/sources.ts";
import { complete } from "./complete.ts";
import { policyTerms } from "../../src/features/index.ts";

type Env = Record<string, string | undefined>;

/** A folder of its own, because a gatehouse.yml lying about would be read. */
function folder() {
  const path = mkdtempSync(join(tmpdir(), "gatehouse-config-"));
  const write = (name: string, text: string) => {
    writeFileSync(join(path, name), text);
    return join(path, name);
  };
  return { path, write, [Symbol.dispose]: () => rmSync(path, { recursive: true }) };
}

function load(
  env: Env,
  { role = "all", cwd = "/nowhere" }: { role?: Role; cwd?: string } = {},
): Config {
  return loadConfig({ env, role, cwd, terms: policyTerms });
}

function problems(env: Env, options?: { role?: Role; cwd?: string }): readonly string[] {
  try {
    load(env, options);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

describe("a complete environment", () => {
  it("needs five variables and has defaults for the rest", () => {
    const { policy, policyVersion, policyFile, files, callerSecret, ...config } = load(complete);
    expect(callerSecret("SOURCE_SECRET_PROMETHEUS").secrets).toEqual([]);
    expect([...files]).toEqual([]);
    expect(policyFile.inForce).toEqual({ policy, policyVersion });
    expect(config).toEqual({
      role: "all",
      slack: {
        botToken: "xoxb-1",
        apiUrl: "https://slack.com/api/",
        receive: { mode: "socket", secret: "xapp-1" },
      },
      compute: {
        url: "https://compute.example",
        apiKey: "key-of-compute",
        allowPrivate: false,
        tls: expect.any(Function),
      },
      proxies: undefined,
      redisUrl: "redis://localhost:6379",
      redisNamespace: "gatehouse",
      redisReplicas: undefined,
      port: 3000,
      ops: { port: 3001, host: "127.0.0.1" },
      dataDir: "/nowhere/.gatehouse",
      logLevel: "info",
      allowVolatileRedis: false,
      watchesPolicy: false,
      warnings: [],
      callerProblems: [],
      secrets: ["xoxb-1", "xapp-1", "key-of-compute"],
    });
    expect(policy.access.operate).toEqual([]);
    expect(policyVersion).toMatch(/^[0-9a-f]{12}$/);
  });

  it("takes every other variable as README says", () => {
    const config = load({
      ...complete,
      SLACK_API_URL: "http://127.0.0.1:4010/api",
      COMPUTE_API_URL: "http://localhost:4020/base/v1/",
      REDIS_URL: "rediss://:pw-of-redis@a:1,b:2",
      REDIS_REPLICAS: "2",
      PORT: "0",
      DATA_DIR: "/var/lib/gatehouse",
      LOG_LEVEL: "DEBUG",
      GATEHOUSE_ALLOW_VOLATILE_REDIS: "1",
    });
    expect(config).toMatchObject({
      slack: { apiUrl: "http://127.0.0.1:4010/api/" },
      compute: { url: "http://localhost:4020/base" },
      redisReplicas: 2,
      port: 0,
      dataDir: "/var/lib/gatehouse",
      logLevel: "debug",
      allowVolatileRedis: true,
    });
    expect(config.secrets).toContain("pw-of-redis");
  });

  it("listens over HTTP with a signing secret alone, and over Socket Mode with both", () => {
    const http = { ...complete, SLACK_APP_TOKEN: "", SLACK_SIGNING_SECRET: "s3cret" };
    expect(load(http).slack.receive).toEqual({ mode: "http", secret: "s3cret" });
    const both = { ...complete, SLACK_SIGNING_SECRET: "s3cret" };
    expect(load(both).slack.receive).toEqual({ mode: "socket", secret: "xapp-1" });
    // With an API Slackbot's calls are signed with it, however Slack delivers
    expect(load({ ...both, API_PORT: "0" }).api?.signingSecret()).toBe("s3cret");
    expect(load({ ...both, API_PORT: "0" }).secrets).toContain("s3cret");
    expect(load({ ...complete, API_PORT: "0" }).api?.signingSecret()).toBeUndefined();
  });

  it("keeps probes off the port that Slack reaches; where it reaches none, PORT is theirs as before", () => {
    const http = { ...complete, SLACK_APP_TOKEN: "", SLACK_SIGNING_SECRET: "s3cret" };
    const ops = (env: Record<string, string>, role: "all" | "worker" = "all") =>
      load(env, { role }).ops;
    expect(ops(http)).toEqual({ port: 3001, host: "127.0.0.1" });
    expect(ops({ ...http, PORT: "80" })).toEqual({ port: 3001, host: "127.0.0.1" });
    expect(ops({ ...http, OPS_PORT: "9000", OPS_HOST: "0.0.0.0" })).toEqual({
      port: 9000,
      host: "0.0.0.0",
    });
    for (const env of [complete, http]) {
      expect(ops(env, "worker")).toEqual({ port: 3001, host: "127.0.0.1" });
      expect(ops({ ...env, PORT: "8080" }, "worker")).toEqual({ port: 3001, host: "127.0.0.1" });
      const moved = { ...env, PORT: "8080", OPS_PORT: "9000" };
      expect(ops(moved, "worker")).toEqual({ port: 9000, host: "127.0.0.1" });
    }
    expect(problems({ ...http, PORT: "3001" })).toEqual([
      "OPS_PORT: must not be 3001, which is PORT: the world reaches that one",
    ]);
    expect(problems({ ...http, OPS_HOST: "my host" })).toEqual([
      'OPS_HOST: must be an IP address of this machine, or :: for all of them, and is "my host"',
    ]);
  });

  it("asks a worker for neither, because it only speaks", () => {
    const { SLACK_APP_TOKEN: _none, ...env } = complete;
    expect(load(env, { role: "worker" }).slack.receive).toBeUndefined();
    const wrong = { ...complete, SLACK_APP_TOKEN: "no token", SLACK_SIGNING_SECRET: "no secret" };
    expect(problems(wrong, { role: "worker" })).toEqual([]);
    expect(problems(env, { role: "gateway" })).toEqual([
      "SLACK_APP_TOKEN: is missing: set it for Socket Mode (xapp-…), or SLACK_SIGNING_SECRET for HTTP",
    ]);
  });
});

describe("a secret in a file", () => {
  it.each([
    "SLACK_BOT_TOKEN",
    "SLACK_APP_TOKEN",
    "COMPUTE_API_KEY",
    "REDIS_URL",
    "SLACK_SIGNING_SECRET",
  ])("is read for %s, without the line's end", (name) => {
    using dir = folder();
    const base: Env = {
      ...complete,
      SLACK_SIGNING_SECRET: "s3cret",
      ...(name === "SLACK_SIGNING_SECRET" && { SLACK_APP_TOKEN: "" }),
    };
    const value = base[name] ?? "";
    dir.write("secret", `${value}\n`);
    const env = { ...base, [name]: undefined, [`${name}_FILE`]: "secret" };
    const { files, callerSecret, ...config } = load(env, { cwd: dir.path });
    expect([...files.keys()]).toEqual([name]);
    expect(callerSecret("SOURCE_SECRET_PROMETHEUS").secrets).toEqual([]);
    const plain = load(base, { cwd: dir.path });
    const compute = { ...plain.compute, tls: expect.any(Function) };
    const others = { files: undefined, callerSecret: undefined };
    expect(config).toEqual({ ...plain, ...others, compute });
  });

  it("is refused when the variable is set as well, the file is missing or empty", () => {
    using dir = folder();
    const empty = dir.write("empty", "\n");
    const env = {
      ...complete,
      SLACK_BOT_TOKEN_FILE: empty,
      REDIS_URL: "",
      REDIS_URL_FILE: "/no/such",
      COMPUTE_API_KEY: "",
      COMPUTE_API_KEY_FILE: empty,
    };
    expect(problems(env)).toEqual([
      "SLACK_BOT_TOKEN: is set, and so is SLACK_BOT_TOKEN_FILE: keep one of them",
      "COMPUTE_API_KEY_FILE: names an empty file",
      "REDIS_URL_FILE: names a file that can't be read (ENOENT)",
    ]);
  });

  it("isn't reported as a missing receiver too when it can't be read", () => {
    const env = { ...complete, SLACK_APP_TOKEN: "", SLACK_APP_TOKEN_FILE: "/no/such" };
    expect(problems(env)).toEqual([
      "SLACK_APP_TOKEN_FILE: names a file that can't be read (ENOENT)",
    ]);
  });
});

describe("a wrong environment", () => {
  it("is told whole, in one message", () => {
    expect(problems({})).toEqual([
      expect.stringMatching(/^SLACK_BOT_TOKEN: is missing: set it to the bot token/),
      expect.stringMatching(/^SLACK_APP_TOKEN: is missing/),
      expect.stringMatching(/^COMPUTE_API_URL: is missing/),
      expect.stringMatching(/^COMPUTE_API_KEY: is missing/),
      expect.stringMatching(/^REDIS_URL: is missing/),
    ]);
    expect(() => load({})).toThrow(
      /can't start with this configuration:\n {2}SLACK_BOT_TOKEN: is missing.*\n {2}SLACK_APP_TOKEN/s,
    );
  });

  it("includes every problem of the policy file, with its line", () => {
    using dir = folder();
    dir.write("gatehouse.yml", "access:\n  operate: [bob]\nnope: 1\n");
    expect(problems({ ...complete, PORT: "x" }, { cwd: dir.path })).toEqual([
      'PORT: must be a whole number from 0 to 65535, and is "x"',
      expect.stringContaining(
        "GATEHOUSE_CONFIG: gatehouse.yml line 2: access.operate[1] must be a user ID",
      ),
      expect.stringContaining("GATEHOUSE_CONFIG: gatehouse.yml line 3: nope isn't known"),
    ]);
  });
});

describe("the policy file", () => {
  it("may be missing at its usual place, and is read from where GATEHOUSE_CONFIG says", () => {
    using dir = folder();
    expect(load(complete, { cwd: dir.path }).policy.access.view).toEqual(["*"]);
    dir.write("rules.yml", "access: { operate: [S01ABC] }");
    const named = load({ ...complete, GATEHOUSE_CONFIG: "rules.yml" }, { cwd: dir.path });
    expect(named.policy.access.operate).toEqual(["S01ABC"]);
  });
});

describe("an address that gets secrets", () => {
  it.each([
    "https://a",
    "http://localhost:1",
    "http://127.9.0.1",
    "http://[::1]:80",
    "http://api.localhost/x",
  ])("may be %s", (text) => {
    expect(addressProblem(text)).toBeUndefined();
  });

  it.each([
    "http://10.0.0.1",
    "http://localhost.evil.example",
    "http://127.0.0.1.example",
    "http://169.254.169.254",
  ])("may not be %s in the open", (text) => {
    expect(addressProblem(text)).toContain("must begin with https://");
  });
});

describe("a program that proposes", () => {
  it("needs the address of the API and a token, which may come from a file, and is told of both", () => {
    using at = folder();
    const url = "https://gatehouse.example";
    const token = "token-of-service";
    const access = { url, token };
    expect(loadApiAccess({ GATEHOUSE_URL: url, GATEHOUSE_TOKEN: token })).toEqual(access);
    const file = at.write("token", `${token}\n`);
    expect(loadApiAccess({ GATEHOUSE_URL: url, GATEHOUSE_TOKEN_FILE: file })).toEqual(access);
    const told = (env: Env, ...sentences: string[]) =>
      expect(() => loadApiAccess(env)).toThrow(
        expect.objectContaining({ problems: sentences.map((one) => expect.stringContaining(one)) }),
      );
    const both = ["GATEHOUSE_URL: must be the address", "GATEHOUSE_TOKEN: must be the token"];
    told({ GATEHOUSE_URL: "gatehouse" }, ...both);
    told({ GATEHOUSE_URL: url, GATEHOUSE_TOKEN_FILE: "/no/such" }, "GATEHOUSE_TOKEN_FILE: names a");
  });
});

describe("a certificate for the compute service", () => {
  it("stays as it was when it is replaced by one that can't be read", () => {
    using at = folder();
    const pem = readFileSync(
      join(root, "test/fleet/compute/certificates/localhost.pem"),
      "utf8",
    ).trim();
    const COMPUTE_CA_FILE = at.write("ca.pem", pem);
    const { compute, files } = load({ ...complete, COMPUTE_CA_FILE });
    at.write("ca.pem", "-----BEGIN CERTIFICATE-----\nhalf\n-----END CERTIFICATE-----\n");
    expect(files.get("COMPUTE_CA_FILE")?.reread()).toBe(false);
    expect(compute.tls().ca).toBe(pem);
  });
});

describe("the folder of endorsements", () => {
  it("stands beside gatehouse.yml, unless its path is absolute", () => {
    using at = folder();
    const env = {
      GATEHOUSE_CONFIG: at.write("gatehouse.yml", "attestation: { endorsements: signed }"),
    };
    expect(loadEndorsementsFolder({ env, cwd: "/nowhere", terms: policyTerms })).toBe(
      join(at.path, "signed"),
    );
    at.write("gatehouse.yml", "attestation: { endorsements: /srv/signed }");
    expect(loadEndorsementsFolder({ env, cwd: "/nowhere", terms: policyTerms })).toBe(
      "/srv/signed",
    );
    expect(
      loadEndorsementsFolder({ env: {}, cwd: "/nowhere", terms: policyTerms }),
    ).toBeUndefined();
    at.write("gatehouse.yml", "attestation: { endorsement: signed }");
    expect(() => loadEndorsementsFolder({ env, terms: policyTerms })).toThrow(
      "did you mean endorsements?",
    );
  });
});
