import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { once } from "node:events";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { getGlobalDispatcher, setGlobalDispatcher } from "undici";
import { silentLog } from "../../../src/log/log.ts";
import { connectRedis } from "../../../src/redis/redis.ts";
import { judgeDirectory } from "../../../src/operate/checks/folders.ts";
import { runDoctor } from "../../../src/cli/doctor.ts";
import { connectProxy } from "../../support/connect-proxy.ts";
import { startWorld, testPolicy, type TestWorld } from "../../support/start-world.ts";
import { privateRedis } from "../../support/with-redis.ts";
import { handedToPrograms } from "../../../src/features/index.ts";

const sources = "sources: { prometheus: { format: alertmanager } }\n";
let redis: Awaited<ReturnType<typeof privateRedis>>;
let world: TestWorld;
beforeAll(async () => {
  redis = await privateRedis();
  const env = { API_PORT: "0", SOURCE_SECRET_PROMETHEUS: "test-secret-one" };
  world = await startWorld({
    redisUrl: redis.url,
    policy: testPolicy + sources,
    receive: "http",
    env,
  });
});
afterAll(async () => {
  await world.close();
  await redis[Symbol.asyncDispose]();
});

/** What `doctor` says, and the lines of it that must be mended. */
async function doctor(env: Record<string, string> = {}) {
  let said = "";
  const code = await runDoctor([], {
    ...handedToPrograms,
    env: { ...world.env, ...env },
    write: (text) => void (said += text),
  });
  const ills = said.split("\n").filter((line) => line.startsWith("  ✗ "));
  expect(said.match(/^ {2}✗ .*\n {4}\S/gm) ?? []).toHaveLength(ills.length);
  expect(code).toBe(ills.length === 0 ? 0 : 1);
  return { said, ills: ills.map((line) => line.slice(4)) };
}

const folder = () => path.dirname(world.env["GATEHOUSE_CONFIG"] ?? "");
const fileWith = (name: string, text: string) => {
  const file = path.join(folder(), name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text, { mode: 0o600 });
  return file;
};

/** A program that isn't Gatehouse, on a port of this machine. */
async function anotherProgram(status = 200) {
  const server = createServer((_, response) => response.writeHead(status).end("{}"));
  server.listen(0);
  await once(server, "listening");
  const address = server.address();
  const port = String(typeof address === "object" ? address?.port : "");
  return {
    port,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

describe("doctor, about ports,", () => {
  it.for(["PORT", "OPS_PORT", "API_PORT"])("says that another program has %s", async (name) => {
    await using other = await anotherProgram();
    const { ills } = await doctor({ [name]: other.port });
    expect(ills).toEqual([
      expect.stringMatching(
        new RegExp(
          `^${name === "API_PORT" ? "port" : name} ${other.port}: another program has it$`,
        ),
      ),
    ]);
  });

  it("tells those of a running Gatehouse from others", async () => {
    const [running] = world.processes;
    const { said, ills } = await doctor({
      PORT: String(running?.port),
      OPS_PORT: String(running?.opsPort),
      API_PORT: String(running?.apiPort),
    });
    expect(ills).toEqual([]);
    for (const words of [
      `✓ PORT ${running?.port}: Gatehouse answers`,
      `✓ OPS_PORT ${running?.opsPort}: Gatehouse answers`,
      `✓ port ${running?.apiPort}: Gatehouse answers`,
    ])
      expect(said).toContain(words);
  });

  it("names an address that this machine doesn't have", async () => {
    const { ills } = await doctor({ OPS_HOST: "192.0.2.1", OPS_PORT: "39123" });
    expect(ills).toEqual(["OPS_PORT 39123: this machine doesn't have that address"]);
  });

  it("tries HOST, where PORT and API_PORT will be", async () => {
    const { ills } = await doctor({ HOST: "192.0.2.1", PORT: "39124", API_PORT: "39125" });
    expect(ills).toEqual([
      "port 39125: this machine doesn't have that address",
      "PORT 39124: this machine doesn't have that address",
    ]);
  });
});

describe("doctor, about files that decide,", () => {
  it.for(["COMPUTE_API_KEY", "SOURCE_SECRET_PROMETHEUS"])(
    "says that everyone may write the file of %s",
    async (name) => {
      const file = fileWith(`${name}-secret`, world.env[name] ?? "");
      const env = { [name]: "", [`${name}_FILE`]: file };
      expect((await doctor(env)).ills).toEqual([]);
      chmodSync(file, 0o646);
      expect((await doctor(env)).ills).toEqual([
        `${name}_FILE: everyone on this machine may write ${file}`,
      ]);
    },
  );

  it("says that everyone may write into the folder of a secret, unless it is sticky", async () => {
    const file = fileWith("open/key", world.env["COMPUTE_API_KEY"] ?? "");
    const env = { COMPUTE_API_KEY: "", COMPUTE_API_KEY_FILE: file };
    chmodSync(path.dirname(file), 0o777);
    expect((await doctor(env)).ills).toEqual([
      `COMPUTE_API_KEY_FILE: everyone on this machine may write into the folder of ${file}`,
    ]);
    chmodSync(path.dirname(file), 0o1777);
    expect((await doctor(env)).ills).toEqual([]);
  });

  it("says that everyone may write the policy", async () => {
    const file = fileWith("writable.yml", testPolicy);
    chmodSync(file, 0o666);
    expect((await doctor({ GATEHOUSE_CONFIG: file })).ills).toEqual([
      `GATEHOUSE_CONFIG: everyone on this machine may write ${file}`,
    ]);
  });
});

describe("doctor, about secrets,", () => {
  it("takes a source's short secret for none, wherever it is", async () => {
    const short =
      /: has a secret of 5 characters, and 12 are the least: make one with openssl rand -hex 32$/;
    const { ills, said } = await doctor({ SOURCE_SECRET_PROMETHEUS: "test-secret-one hunt2" });
    expect(ills).toEqual([expect.stringMatching(short)]);
    expect(said).not.toContain("hunt2");
    const file = fileWith("short", "hunt2\n");
    const named = await doctor({
      SOURCE_SECRET_PROMETHEUS: "",
      SOURCE_SECRET_PROMETHEUS_FILE: file,
    });
    expect(named.ills).toEqual([expect.stringMatching(short)]);
  });

  it.for([
    "COMPUTE_API_KEY",
    "SLACK_SIGNING_SECRET",
    "SLACK_BOT_TOKEN",
    "REDIS_URL",
    "COMPUTE_API_URL",
  ])("finds %s in quotes, which docker --env-file keeps", async (name) => {
    for (const quote of ['"', "'"]) {
      const { ills } = await doctor({ [name]: `${quote}${world.env[name]}${quote}` });
      expect(ills).toEqual([`${name}: is in quotes, which are taken as part of it: remove them`]);
    }
  });

  it.for(["CA_FILE", "COMPUTE_CA_FILE", "REDIS_URL_FILE"])(
    "finds the path %s in quotes",
    async (name) => {
      const file = fileWith("path-in-quotes", "redis://127.0.0.1");
      const { ills } = await doctor({ REDIS_URL: "", [name]: `"${file}"` });
      expect(ills).toContain(`${name}: is in quotes, which are taken as part of it: remove them`);
    },
  );

  it("finds quotes in a file, and around the secret of a source", async () => {
    const file = fileWith("quoted", `"${world.env["COMPUTE_API_KEY"]}"\n`);
    expect((await doctor({ COMPUTE_API_KEY: "", COMPUTE_API_KEY_FILE: file })).ills).toEqual([
      "COMPUTE_API_KEY_FILE: is in quotes, which are taken as part of it: remove them",
    ]);
    expect((await doctor({ SOURCE_SECRET_PROMETHEUS: '"test-secret-one"' })).ills).toEqual([
      "SOURCE_SECRET_PROMETHEUS: is in quotes, which are taken as part of it: remove them",
    ]);
  });
});

describe("doctor", () => {
  it("blames a Redis that is full", async () => {
    await world.client.config("SET", "maxmemory", "1");
    try {
      const { ills, said } = await doctor();
      expect(ills).toEqual(["Redis is full and refuses to write"]);
      expect(said).toContain("Raise maxmemory");
    } finally {
      await world.client.config("SET", "maxmemory", "0");
    }
  });

  it("blames a Redis that is a replica", async () => {
    await using other = await privateRedis();
    const client = await connectRedis(other.url, "commands", silentLog());
    await client.call("REPLICAOF", "127.0.0.1", String(redis.port));
    client.disconnect();
    const { ills, said } = await doctor({ REDIS_URL: other.url });
    expect(ills).toEqual(["Redis is a read-only replica and refuses to write"]);
    expect(said).toContain("Name its primary in REDIS_URL");
  });

  it("blames a proxy that refuses the user or the password", async () => {
    await using proxy = await connectProxy();
    const before = getGlobalDispatcher();
    try {
      const wrong = proxy.url.replace(/:[^:@/]+@/, ":hunter22@");
      const slack = await doctor({
        HTTPS_PROXY: wrong,
        NO_PROXY: "127.0.0.1",
        SLACK_API_URL: "https://slack.invalid/api",
      });
      expect(slack.ills[0]).toBe(
        "Slack: the proxy in HTTPS_PROXY answers 407: it refuses the user or the password",
      );
      expect(slack.said).not.toMatch(/hunter22|DNS/);
      const service = await doctor({
        HTTPS_PROXY: wrong,
        NO_PROXY: "127.0.0.1",
        COMPUTE_API_URL: "https://compute.invalid",
      });
      expect(service.ills).toEqual([
        expect.stringMatching(
          /^compute.invalid, through the proxy 127.0.0.1:\d+: the proxy in HTTPS_PROXY answers 407: it refuses the user or the password$/,
        ),
      ]);
    } finally {
      setGlobalDispatcher(before);
    }
  });

  it("blames a data directory whose ledger is another's, or that can't be reached", async () => {
    const file = fileWith("data-of-another/ledger", "");
    const { ills } = await doctor({ DATA_DIR: path.dirname(file) });
    expect(ills).toEqual([`DATA_DIR: ${file} can't be written (ENOTDIR)`]);
    const facts = { folder: "/data", owner: 0, user: 1000, freeBytes: 2 ** 40, problem: undefined };
    const [finding] = judgeDirectory({ ...facts, isHidden: false, ledgerProblem: "EACCES" });
    expect(finding?.next).toBe(
      "Another user ran Gatehouse there: give it all to user 1000 (chown -R 1000 /data).",
    );
    const [hidden] = judgeDirectory({ ...facts, isHidden: true, ledgerProblem: undefined });
    expect(hidden?.text).toBe(
      "DATA_DIR: /data can't be reached (EACCES): user 1000 may not enter a folder above it",
    );
  });
});
