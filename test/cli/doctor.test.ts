import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import { tmpdir } from "node:os";
import path from "node:path";
import { getGlobalDispatcher, setGlobalDispatcher } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runDoctor } from "../../src/cli/doctor.ts";
import { freePort } from "../../sandbox/ensure-redis.ts";
import { readStoredPolicy, storedPolicyKey } from "../../src/audit/stored-policy.ts";
import { trustAuthorities } from "../../src/config/authorities.ts";
import { root } from "../structure/sources.ts";
import { adoptText } from "../support/policy-text.ts";
import { createKeys } from "../../src/redis/redis.ts";
import { connectProxy } from "../support/connect-proxy.ts";
import { mintAuthority, type MintedCertificate } from "../support/mint-authority.ts";
import { startWorld, testPolicy, type TestWorld } from "../support/start-world.ts";
import { startTlsFront } from "../support/tls-front.ts";
import { privateRedis } from "../support/with-redis.ts";
import { handedToPrograms } from "../../src/features/index.ts";

const certificates = mkdtempSync(path.join(tmpdir(), "gatehouse-doctor-"));
afterAll(() => rmSync(certificates, { recursive: true }));
let redis: Awaited<ReturnType<typeof privateRedis>>;
let world: TestWorld;
beforeAll(async () => {
  redis = await privateRedis();
  world = await startWorld({ redisUrl: redis.url, policy: testPolicy });
});
afterAll(async () => {
  await world.close();
  await redis[Symbol.asyncDispose]();
});

async function doctor(env: Record<string, string> = {}, words: readonly string[] = []) {
  let said = "";
  const code = await runDoctor(words, {
    ...handedToPrograms,
    env: { ...world.env, ...env },
    write: (text) => void (said += text),
  });
  return { code, said };
}

const policyFile = (name: string, text: string) => {
  const file = path.join(path.dirname(world.env["GATEHOUSE_CONFIG"] ?? ""), name);
  writeFileSync(file, text);
  return file;
};

describe("doctor, beside a running Gatehouse", () => {
  it("finds nothing to mend in a world that is well, and disturbs nobody", async () => {
    const { code, said } = await doctor();
    expect(said).not.toContain("  ✗ ");
    expect(code).toBe(0);
    for (const line of [
      "✓ bot token: @gatehouse in ",
      "✓ scopes: all that manifest.yml asks for",
      "✓ app token: Socket Mode opens",
      "✓ clock: within a minute",
      "✓ keeps everything on disk, evicts nothing",
      "✓ its user may write Gatehouse's keys",
      "is used by the Slack app A01GATEHOUSE of",
      "the key may read projects",
      "✓ groups: all 2 exist and have members",
      "✓ people: all 1 named are members",
      "✓ channels: Gatehouse is in all 3",
      "✓ approvers: ",
      "can be written",
    ])
      expect(said).toContain(line);
    await world.olivia.types("ops", "/vm restart web-2");
    expect(await world.ended("vm restart")).toMatchObject({ state: "done" });
  });

  it("compares the file with the policy in force, which it leaves as it is", async () => {
    // Doctor looks where an installation has its keys, which this world hasn't
    const key = createKeys();
    const text = `version: 12\n${testPolicy}`;
    const beside = (name: string, content: string) =>
      doctor({ GATEHOUSE_CONFIG: policyFile(name, content) });
    const none = await beside("none.yml", text);
    expect(none.said).toContain("✓ in force: none yet; the first process to start brings this one");
    await using _ = {
      async [Symbol.asyncDispose]() {
        await world.client.del(storedPolicyKey(key));
      },
    };
    const stored = await adoptText(world.client, key, text);
    const same = await beside("same.yml", `# the same\n${text}`);
    expect(same.said).toContain(`✓ in force: version 12 (${stored.rules}), which this file has`);
    expect(same.said).toContain(`the policy has version 12 (${stored.rules})`);
    const lower = await beside("lower.yml", `version: 11\nprotect: [vault-1]`);
    expect(lower.said).toMatch(
      /✗ \S*lower.yml has version 11 and needs one above 12, which is in force/,
    );
    expect(lower.code).toBe(1);
    expect(await readStoredPolicy(world.client, key)).toEqual(stored);
  });

  /** What is broken, how, and the lines that name it: each begins with ✗. */
  const planted: [fault: string, plant: () => Promise<Planted> | Planted, lines: Line[]][] = [
    [
      "a revoked bot token, a wrong key, a wrong password of Redis, a directory that can't be written",
      () => ({
        env: {
          SLACK_BOT_TOKEN: "xoxb-hunter22-revoked",
          COMPUTE_API_KEY: "hunter22-wrong",
          REDIS_URL: redis.url.replace("redis://", "redis://nobody:hunter22@"),
          DATA_DIR: "/dev/null/data",
        },
      }),
      [
        ["SLACK_BOT_TOKEN: Slack refuses it (invalid_auth)", "Copy it again"],
        ["COMPUTE_API_KEY is refused (401)", "valid key"],
        ["REDIS_URL: Redis at 127.0.0.1", "REDIS_URL"],
        ["DATA_DIR: /dev/null/data can't be made (E"],
      ],
    ],
    [
      "swapped tokens",
      () => ({
        env: {
          SLACK_BOT_TOKEN: world.env["SLACK_APP_TOKEN"] ?? "",
          SLACK_APP_TOKEN: world.env["SLACK_BOT_TOKEN"] ?? "",
        },
      }),
      [
        ["SLACK_BOT_TOKEN: is an app-level token (xapp-)"],
        ["SLACK_APP_TOKEN: is a bot token (xoxb-)"],
      ],
    ],
    [
      "another app's app token, missing scopes, another path, a Redis that may forget and evicts",
      async () => {
        const { app } = world.slack;
        const { scopes } = app;
        app.scopes = scopes.filter((scope) => !["files:write", "usergroups:read"].includes(scope));
        await world.client.config("SET", "maxmemory-policy", "allkeys-lru");
        return {
          env: {
            SLACK_APP_TOKEN: "xapp-1-AOTHER-hunter22",
            COMPUTE_API_URL: `${world.compute.url}/another/path`,
          },
          async mend() {
            app.scopes = scopes;
            await world.client.config("SET", "maxmemory-policy", "noeviction");
          },
        };
      },
      [
        ["scopes: files:write, usergroups:read missing", "manifest.yml"],
        ["SLACK_APP_TOKEN: Slack refuses it (invalid_auth)"],
        ["Redis may evict Gatehouse's records"],
        ["the list of projects isn't there (404)", "COMPUTE_API_URL"],
      ],
    ],
    [
      "a policy of people, groups, and channels that aren't there; a user of Redis who may not write; nobody listens",
      async () => {
        await world.client.call(
          "ACL",
          "SETUSER",
          "reader",
          "on",
          ">hunter22",
          "~*",
          "+@read",
          "+@connection",
          "+info",
        );
        return {
          env: {
            REDIS_URL: redis.url.replace("redis://", "redis://reader:hunter22@"),
            COMPUTE_API_URL: "http://127.0.0.1:9",
            GATEHOUSE_CONFIG: policyFile(
              "faults.yml",
              `access: { operate: [S0NOGROUP, U0DORA, U0GINA, U0STAN, U0DEPLOYBOT, U0NOBODY], approve: [U0DORA], administer: [U0ADA] }
approvals: [{ operations: [vm.restore], required: 1 }]
channels: [C01OPS, C04RANDOM, C0NOWHERE]
alerts: { channel: C07VENDOR }
audit: { channel: C06SECRET }
`,
            ),
          },
        };
      },
      [
        ["group S0NOGROUP: isn't in this workspace, or is disabled", "ID"],
        ["U0DORA has been deactivated"],
        ["U0GINA is a guest, who may only view"],
        ["U0STAN is of another workspace"],
        ["U0DEPLOYBOT is a bot"],
        ["U0NOBODY isn't in this workspace", "ID"],
        ["channel C04RANDOM: Gatehouse isn't in it", "/invite"],
        ["channel C0NOWHERE: isn't there, or is private", "/invite"],
        ["channel C06SECRET: isn't there, or is private", "/invite"],
        [
          "channel C07VENDOR: another company shares it, so Gatehouse posts nothing there",
          "sharedChannels",
        ],
        ["approvers: nobody, and a rule needs 1", "access.approve"],
        ["it refuses to write: NOPERM", "compose.yaml"],
        ["the connection was refused", "firewall"],
      ],
    ],
    [
      "an empty group, no one who operates, a certificate that nobody trusts, a Redis without an append-only file and nearly full",
      async () => {
        await world.slack.edit.setGroupMembers("leads", []);
        await world.client.config("SET", "appendonly", "no");
        const used = /used_memory:(\d+)/.exec(await world.client.info("memory"))?.[1] ?? "0";
        await world.client.config("SET", "maxmemory", String(Math.round(Number(used) * 1.1)));
        const api = await tlsServer();
        return {
          env: {
            COMPUTE_API_URL: api.url,
            GATEHOUSE_CONFIG: policyFile("empty.yml", "access: { approve: [S02LEADS] }\n"),
          },
          async mend() {
            await api.close();
            await world.client.config("SET", "maxmemory", "0");
            await world.client.config("SET", "appendonly", "yes");
            await world.slack.edit.setGroupMembers("leads", ["U0AMIR", "U0ADA"]);
          },
        };
      },
      [
        ["access.operate names no one: nobody can change anything", "gatehouse.yml"],
        ["group S02LEADS: has no members", "Slack"],
        ["approvers: nobody, and a rule needs 1", "access.approve"],
        ["its certificate or the TLS handshake failed"],
        ["certificate: localhost, from localhost, "],
        ["Redis keeps nothing on disk", "doesn't start"],
        ["memory: ", "maxmemory"],
      ],
    ],
    [
      "a folder of endorsements that isn't there",
      () => ({
        env: {
          GATEHOUSE_CONFIG: policyFile(
            "folder.yml",
            `${testPolicy}attestation:\n  endorsements: /no/such/folder\n`,
          ),
        },
      }),
      [
        [
          `folder.yml line ${testPolicy.split("\n").length + 1}: attestation.endorsements: /no/such/folder isn't there: no VM can be verified`,
          "Make it and fill it (node gatehouse.mjs attestation import), or let attestation.refresh fill it; docs/attestation.md names the files.",
        ],
      ],
    ],
    [
      "no Slack",
      () => ({ env: { SLACK_API_URL: "http://127.0.0.1:9/api/" } }),
      [["Slack can't be reached: ", "HTTPS_PROXY"]],
    ],
  ];

  it.each(planted)("names %s", async (_, plant, lines) => {
    const { env, mend: repair } = await plant();
    try {
      const { code, said } = await doctor(env);
      const ills = said.split("\n").filter((line) => line.startsWith("  ✗ "));
      for (const [line, mend = ""] of lines) {
        const named = ills.filter((ill) => ill.includes(line));
        expect(named, `${line} in ${said}`).toHaveLength(1);
        const [, below = ""] = said.split(`${named[0]}\n`);
        expect(below.split("\n  ")[0], line).toContain(mend);
      }
      // Nothing else is blamed, each has a mend in the next line, and no secret is printed
      expect(ills.length, said).toBe(lines.length);
      expect(said.match(/^ {2}✗ .*\n {4}\S/gm)).toHaveLength(ills.length);
      expect(said).not.toContain("hunter22");
      expect(code).toBe(1);
    } finally {
      await repair?.();
    }
  });

  it("goes on with the other checks where the policy or a variable has a mistake", async () => {
    const GATEHOUSE_CONFIG = policyFile("typo.yml", "access: { oprate: [] }\n");
    const wrong = await doctor({ GATEHOUSE_CONFIG, LOG_LEVEL: "loud" });
    expect(wrong.code).toBe(1);
    expect(wrong.said.split("\n").filter((line) => line.startsWith("  ✗"))).toEqual([
      expect.stringMatching(/LOG_LEVEL: must be one of/),
      expect.stringMatching(/typo\.yml line 1: access\.oprate isn't known; did you mean operate\?/),
    ]);
    for (const line of [
      "✓ bot token: @gatehouse in ",
      "✓ round trip: ",
      "the rest is checked without",
    ])
      expect(wrong.said).toContain(line);
    expect(wrong.said).not.toMatch(/access\.operate names no one/);
    // Without an address there is nothing to go on with.
    const { said } = await doctor({ GATEHOUSE_CONFIG, REDIS_URL: "" });
    expect(said).toMatch(/REDIS_URL: is missing/);
    expect(said).not.toContain("  ✓ ");
  });

  it("takes a role, and no other words", async () => {
    const { SLACK_APP_TOKEN: _, ...env } = world.env;
    let said = "";
    const write = (text: string) => void (said += text);
    expect(await runDoctor(["worker"], { ...handedToPrograms, env, write })).toBe(0);
    expect(said).not.toContain("SLACK_APP_TOKEN");
    expect(await runDoctor(["everything"], { ...handedToPrograms, env, write })).toBe(64);
  });
});

describe("doctor, behind a private authority", () => {
  const authority = mintAuthority("Acme Private CA");
  const localhost = { hosts: ["localhost"] };
  const rows: [
    what: string,
    made: MintedCertificate,
    more: Record<string, string>,
    line: RegExp,
    fix: string,
  ][] = [
    [
      "names the issuer, and CA_FILE",
      authority.mint("localhost", localhost),
      {},
      /"Acme Private CA" isn't trusted here \((UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER_CERT_LOCALLY)\)/,
      'Put the certificate of "Acme Private CA" (PEM) into a file, and name the file in CA_FILE.',
    ],
    [
      "says that CA_FILE lacks it",
      authority.mint("localhost", localhost),
      { CA_FILE: certificateFile("other", mintAuthority("Another CA").certificate) },
      /"Acme Private CA" isn't trusted here/,
      "CA_FILE lacks it: add the certificate",
    ],
    [
      "says since when one has expired",
      authority.mint("localhost", { ...localhost, fromDays: -40, untilDays: -3 }),
      { CA_FILE: certificateFile("ours", authority.certificate) },
      /certificate: localhost, from Acme Private CA, expired 3 days ago/,
      "localhost needs a new certificate; no setting here helps.",
    ],
    [
      "says whom one is for that is another host's",
      authority.mint("redis-7", { hosts: ["redis-7.acme.example", "10.1.2.3"] }),
      { CA_FILE: certificateFile("ours", authority.certificate) },
      /it is for redis-7\.acme\.example, 10\.1\.2\.3, and not for localhost/,
      "Put the name that the certificate has into ",
    ],
  ];

  it.each(rows)(
    "%s: of Slack, Redis, and the compute service, also through a proxy",
    async (_, made, more, line, fix) => {
      const tlsPort = await redisOverTls(made, { authClients: "no" });
      await using slack = await startTlsFront(made, world.slack.url);
      await using compute = await startTlsFront(made, world.compute.url);
      await using proxy = await connectProxy();
      const env = {
        SLACK_API_URL: `${slack.url}/api/`,
        COMPUTE_API_URL: compute.url,
        REDIS_URL: `rediss://localhost:${tlsPort}`,
        ...more,
      };
      const dispatcher = getGlobalDispatcher();
      try {
        const throughProxy = { HTTPS_PROXY: proxy.url };
        // The proxy makes a difference for the way there, not for what is found
        for (const through of made === rows[0]?.[1] ? [{}, throughProxy] : [throughProxy]) {
          const { code, said } = await doctor({ ...env, ...through });
          expect(code).toBe(1);
          const found = said.split("\n").filter((text) => line.test(text));
          expect(found, said).toHaveLength(3);
          expect(found.every((text) => text.startsWith("  ✗ "))).toBe(true);
          expect(said.split(fix), said).toHaveLength(4);
          // Neither DNS nor a proxy is to blame
          expect(said).not.toMatch(/SLACK_API_URL, DNS|DNS of this machine|needs HTTPS_PROXY/);
        }
        expect(proxy.tunnels.length).toBeGreaterThan(1);
      } finally {
        setGlobalDispatcher(dispatcher);
        trustAuthorities(undefined);
      }
    },
  );

  it("names the issuer of a proxy's own certificate, where that one isn't trusted", async () => {
    const made = authority.mint("localhost", localhost);
    await using slack = await startTlsFront(made, world.slack.url);
    await using compute = await startTlsFront(made, world.compute.url);
    await using proxy = await connectProxy();
    const stranger = mintAuthority("Another CA").mint("localhost", localhost);
    await using front = await startTlsFront(stranger, proxy.url);
    const dispatcher = getGlobalDispatcher();
    try {
      const { code, said } = await doctor({
        SLACK_API_URL: `${slack.url}/api/`,
        COMPUTE_API_URL: compute.url,
        CA_FILE: certificateFile("ours", authority.certificate),
        HTTPS_PROXY: proxy.url
          .replace("http:", "https:")
          .replace(/@.*/, `@localhost:${front.port}`),
      });
      const line =
        /✗ .*certificate of the proxy: localhost, from Another CA, .*"Another CA" isn't trusted/g;
      expect(said.match(line), said).toHaveLength(2);
      expect(said).toContain('CA_FILE lacks it: add the certificate of "Another CA" (PEM)');
      expect(code).toBe(1);
      expect(proxy.tunnels).toEqual([]);
    } finally {
      setGlobalDispatcher(dispatcher);
      trustAuthorities(undefined);
    }
  });

  it("says that Redis asks for a client certificate, that it refuses the one it is shown, and that a port doesn't speak TLS", async () => {
    const made = authority.mint("localhost", localhost);
    const ca = certificateFile("ours", authority.certificate);
    const tlsPort = await redisOverTls(made, { authClients: "yes", ca });
    const stranger = mintAuthority("Another CA").mint("gatehouse");
    const shown = certificateFile("stranger", `${stranger.cert}${stranger.key}`);
    const env = { CA_FILE: ca, REDIS_URL: `rediss://localhost:${tlsPort}` };
    try {
      const problems = [
        [{}, "Redis asks for a client certificate: set REDIS_CERT_FILE and REDIS_KEY_FILE"],
        [
          { REDIS_CERT_FILE: shown, REDIS_KEY_FILE: shown },
          "Redis refuses the certificate in REDIS_CERT_FILE",
        ],
        [
          { REDIS_URL: `rediss://localhost:${redis.port}` },
          "check REDIS_URL (rediss:// is for a port that speaks TLS)",
        ],
      ] as const;
      // Each tries for seconds to reach Redis
      const looks = problems.map(async ([more, words]) => {
        const { code, said } = await doctor({ ...env, ...more });
        expect(said).toContain(words);
        expect(code).toBe(1);
      });
      await Promise.all(looks);
    } finally {
      trustAuthorities(undefined);
    }
  });
});

/** Lets the world's Redis also listen on a port that speaks TLS, with this certificate. */
async function redisOverTls(
  { cert, key }: MintedCertificate,
  { authClients, ca }: { authClients: "yes" | "no"; ca?: string },
): Promise<number> {
  tlsPorts += 1;
  const file = certificateFile(`server-${tlsPorts}`, `${cert}${key}`);
  const port = await freePort();
  const settings = {
    "tls-port": String(port),
    "tls-auth-clients": authClients,
    "tls-ca-cert-file": ca ?? file,
    "tls-cert-file": file,
    "tls-key-file": file,
  };
  await world.client.config("SET", ...Object.entries(settings).flat());
  return port;
}
let tlsPorts = 0;

/** A file of this name, for as long as the world lasts. */
function certificateFile(name: string, text: string): string {
  const file = path.join(certificates, `${name}.pem`);
  writeFileSync(file, text);
  return file;
}

/** A part of the line that names a fault, and of the line below it, which says what to do. */
type Line = [named: string, mend?: string];

interface Planted {
  env: Record<string, string>;
  mend?: () => Promise<void>;
}

async function tlsServer() {
  const pem = readFileSync(
    path.join(root, "test/fleet/compute/certificates/localhost.pem"),
    "utf8",
  );
  const server = createServer({ key: pem, cert: pem }, (_, response) => response.end("{}"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const close = async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  };
  return { url: `https://localhost:${port}`, close };
}
