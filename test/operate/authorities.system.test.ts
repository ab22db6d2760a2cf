import { once } from "node:events";
import { createServer } from "node:http";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { freePort } from "../../sandbox/ensure-redis.ts";
import { connectProxy } from "../support/connect-proxy.ts";
import { mintAuthority } from "../support/mint-authority.ts";
import { startTlsFront } from "../support/tls-front.ts";
import { startNode } from "../support/start-program.ts";
import { startWorld, testPolicy } from "../support/start-world.ts";
import { privateRedis } from "../support/with-redis.ts";

async function temporaryFolder(): Promise<AsyncDisposable & { path: string }> {
  const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-authorities-"));
  return {
    path: folder,
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

/** A collector that counts what it is sent. */
async function startCollector(): Promise<AsyncDisposable & { url: string; posts(): number }> {
  let posts = 0;
  const server = createServer((request, response) => {
    posts += 1;
    request.resume().on("end", () => response.writeHead(200).end("{}"));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    posts: () => posts,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

describe("an installation behind a private authority", () => {
  it.each([
    ["directly", false],
    ["through a proxy that speaks TLS", true],
  ])(
    "works with CA_FILE in an --env-file alone, %s: Slack's API, WebSocket, and response URLs, Redis with client certificates, the compute service, a collector",
    async (_, isProxied) => {
      await using folder = await temporaryFolder();
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
      await using redis = await privateRedis([
        ...`--tls-port ${tlsPort} --tls-auth-clients yes --tls-ca-cert-file ${ca}`.split(" "),
        "--tls-cert-file",
        await file("redis.pem", server.cert),
        "--tls-key-file",
        await file("redis-key.pem", server.key),
      ]);
      await using world = await startWorld({
        roles: [],
        policy: testPolicy,
        redisUrl: redis.url,
        compute: { transitionMs: { restart: 60 } },
      });
      await using collector = await startCollector();
      await using slack = await startTlsFront(server, world.slack.url);
      await using compute = await startTlsFront(server, world.compute.url);
      await using traces = await startTlsFront(server, collector.url);
      await using proxy = await connectProxy();
      await using proxyFront = await startTlsFront(server, proxy.url);
      world.slack.workspace.url = slack.url;
      const variables = {
        ...world.env,
        SLACK_API_URL: `${slack.url}/api/`,
        COMPUTE_API_URL: `${compute.url}/v1/`,
        REDIS_URL: `rediss://localhost:${tlsPort}`,
        REDIS_CERT_FILE: await file("gatehouse.pem", ours.cert),
        REDIS_KEY_FILE: await file("gatehouse-key.pem", ours.key),
        OTEL_EXPORTER_OTLP_ENDPOINT: traces.url,
        CA_FILE: ca,
        NODE_EXTRA_CA_CERTS: ca,
        ...(isProxied
          ? {
              HTTPS_PROXY: proxy.url
                .replace(/^http:(.*):\d+$/, `https:$1:${proxyFront.port}`)
                .replace("127.0.0.1", "localhost"),
            }
          : {}),
      };
      const envFile = await file(
        ".env",
        Object.entries(variables)
          .map(([name, value]) => `${name}=${value}\n`)
          .join(""),
      );
      const run = (...words: string[]) =>
        startNode([`--env-file=${envFile}`, "gatehouse.mjs", ...words], {});
      await using main = run();
      await Promise.race([world.slack.connected(1), main.ended]).catch((error: unknown) => {
        throw new Error(`${String(error)}\n${main.output()}`);
      });
      expect(main.child.exitCode, main.output()).toBeNull();
      // The answer comes by a response URL
      await world.vera.types("ops", "/vm list");
      await world.vera.until((all) => JSON.stringify(all).includes("web-2"));
      await world.olivia.types("ops", "/vm restart web-2");
      await world.olivia.until((all) => JSON.stringify(all).includes("Restarted `web-2`"));
      for (const front of [slack, compute]) expect(front.connections()).toBeGreaterThan(0);
      const hosts = isProxied ? [slack, compute].map(({ url }) => new URL(url).host) : [];
      expect(new Set(proxy.tunnels)).toEqual(new Set(hosts));
      for (const words of [["doctor"], ["audit", "head"]]) {
        await using program = run(...words);
        const code = await program.ended;
        expect(program.output()).not.toContain("  ✗ ");
        if (words[0] === "doctor")
          for (const line of [
            "! NODE_EXTRA_CA_CERTS is set, and Node.js read nothing from it",
            "✓ certificate: localhost, from Acme Private CA, 299 days left",
            "✓ REDIS_CERT_FILE: 299 days left",
          ])
            expect(program.output()).toContain(line);
        expect({ words, code }, program.output()).toEqual({ words, code: 0 });
      }
      expect(collector.posts()).toBeGreaterThan(0);
    },
  );
});
