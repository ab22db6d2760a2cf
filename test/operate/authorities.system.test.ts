import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freePort } from "../../sandbox/ensure-redis.ts";
import { connectProxy } from "../support/connect-proxy.ts";
import { mintAuthority } from "../support/mint-authority.ts";
import { startTlsFront } from "../support/tls-front.ts";
import { hears } from "../stories/words.ts";
import { startNode } from "../support/start-program.ts";
import { startWorld, type TestWorld } from "../support/start-world.ts";
import { privateRedis } from "../support/with-redis.ts";

async function temporaryFolder(): Promise<AsyncDisposable & { path: string }> {
  const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-authorities-"));
  return {
    path: folder,
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

describe("an installation behind a private authority, with CA_FILE in an --env-file alone", () => {
  const stack = new AsyncDisposableStack();
  let installed: Awaited<ReturnType<typeof install>>;
  beforeAll(async () => {
    installed = await install(stack);
  });
  afterAll(() => stack.disposeAsync());

  it("works directly: Slack's API, WebSocket, and response URLs, Redis with client certificates, the compute service", async () => {
    const { world, run, slack, compute, proxy } = installed;
    await using main = await run();
    await connected(world, main);
    // The answer comes by a response URL
    await world.vera.types("ops", "/vm list");
    await hears(world.vera, "ops", /web-2/);
    await world.olivia.types("ops", "/vm restart web-2");
    await hears(world.olivia, "ops", /Restarted web-2/);
    for (const front of [slack, compute]) expect(front.connections()).toBeGreaterThan(0);
    expect(proxy.tunnels).toEqual([]);
    await main.stop();
  });

  it("works through a proxy that speaks TLS", async () => {
    const { world, run, slack, compute, proxy, proxyUrl } = installed;
    await using main = await run([], { HTTPS_PROXY: proxyUrl });
    await connected(world, main);
    await world.vera.types("ops", "/vm show nothing-9");
    await hears(world.vera, "ops", /nothing-9/);
    await world.olivia.types("ops", "/vm restart db-1");
    await hears(world.olivia, "ops", /Restarted db-1/);
    expect(new Set(proxy.tunnels)).toEqual(
      new Set([slack, compute].map(({ url }) => new URL(url).host)),
    );
    await main.stop();
  });

  it("passes doctor, and has its trail read", async () => {
    const { run } = installed;
    await using doctor = await run(["doctor"]);
    const code = await doctor.ended;
    expect(doctor.output()).not.toContain("  ✗ ");
    for (const line of [
      "! NODE_EXTRA_CA_CERTS is set, and Node.js read nothing from it",
      "✓ certificate: localhost, from Acme Private CA, 299 days left",
      "✓ REDIS_CERT_FILE: 299 days left",
    ])
      expect(doctor.output()).toContain(line);
    expect(code, doctor.output()).toBe(0);
    await using audit = await run(["audit", "head"]);
    expect(await audit.ended, audit.output()).toBe(0);
  });
});

/** Resolves once the program receives; rejects with what it says if it ends before. */
async function connected(world: TestWorld, main: ReturnType<typeof startNode>): Promise<void> {
  await Promise.race([
    world.slack.connected(1),
    main.ended.then(() => Promise.reject(new Error(main.output()))),
  ]);
}

/** Everything that Gatehouse talks to, each behind a certificate of the authority. */
async function install(stack: AsyncDisposableStack) {
  const folder = stack.use(await temporaryFolder());
  const authority = mintAuthority("Acme Private CA");
  const file = async (name: string, text: string) => {
    const place = path.join(folder.path, name);
    await writeFile(place, text);
    return place;
  };
  const ca = await file("ca.pem", authority.certificate);
  const server = authority.mint("localhost", { hosts: ["localhost", "127.0.0.1"] });
  const ours = authority.mint("gatehouse");
  const tlsPort = await freePort();
  const redis = stack.use(
    await privateRedis([
      ...`--tls-port ${tlsPort} --tls-auth-clients yes --tls-ca-cert-file ${ca}`.split(" "),
      "--tls-cert-file",
      await file("redis.pem", server.cert),
      "--tls-key-file",
      await file("redis-key.pem", server.key),
    ]),
  );
  const world = stack.use(await startWorld({ roles: [], redisUrl: redis.url }));
  const slack = stack.use(await startTlsFront(server, world.slack.url));
  const compute = stack.use(await startTlsFront(server, world.compute.url));
  const proxy = stack.use(await connectProxy());
  const proxyFront = stack.use(await startTlsFront(server, proxy.url));
  world.slack.workspace.url = slack.url;
  const variables = {
    ...world.env,
    SLACK_API_URL: `${slack.url}/api/`,
    COMPUTE_API_URL: `${compute.url}/v1/`,
    REDIS_URL: `rediss://localhost:${tlsPort}`,
    REDIS_CERT_FILE: await file("gatehouse.pem", ours.cert),
    REDIS_KEY_FILE: await file("gatehouse-key.pem", ours.key),
    CA_FILE: ca,
    NODE_EXTRA_CA_CERTS: ca,
  };
  return {
    world,
    slack,
    compute,
    proxy,
    proxyUrl: proxy.url
      .replace(/^http:(.*):\d+$/, `https:$1:${proxyFront.port}`)
      .replace("127.0.0.1", "localhost"),
    /** Starts Gatehouse with these words, and with its variables in a file. */
    async run(words: readonly string[] = [], more: Readonly<Record<string, string>> = {}) {
      const lines = Object.entries({ ...variables, ...more }).map(
        ([name, is]) => `${name}=${is}\n`,
      );
      const envFile = await file(".env", lines.join(""));
      return startNode([`--env-file=${envFile}`, "gatehouse.mjs", ...words], {});
    },
  };
}
