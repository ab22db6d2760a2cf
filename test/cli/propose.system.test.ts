import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { listen } from "../../sandbox/listen.ts";
import { connectProxy } from "../support/connect-proxy.ts";
import { mintAuthority } from "../support/mint-authority.ts";
import { startProgram } from "../support/start-program.ts";
import { startTlsFront } from "../support/tls-front.ts";

const words = ["propose", "vm snapshot db-1 before-deploy", "--reason", "release 42"];
const propose = (url: string, ...more: string[]) =>
  startProgram([...words, ...more], { GATEHOUSE_URL: url, GATEHOUSE_TOKEN: "fake-token" });

describe("propose as a program", () => {
  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("says on %s what stands, and ends with %i", async (signal, code) => {
    const server = createServer();
    const { url, close } = await listen(server, 0);
    onTestFinished(() => (server.closeAllConnections(), close()));
    await using program = propose(url, "--key", "ci-42");
    await once(server, "request");
    program.child.kill(signal);
    expect([await program.ended, program.output()]).toEqual([
      code,
      "The proposal may have been made. The same command with --key ci-42 asks again without making a second.\n",
    ]);
  });

  it("goes through HTTPS_PROXY, but not where NO_PROXY has the address or its range", async () => {
    const server = createServer((_request, response) => {
      response.writeHead(401, { "content-type": "application/problem+json" }).end("{}");
    });
    const { url, close } = await listen(server, 0);
    onTestFinished(() => (server.closeAllConnections(), close()));
    const authority = mintAuthority("Company CA");
    const certificate = authority.mint("api", { hosts: ["localhost", "127.0.0.1"] });
    await using front = await startTlsFront(certificate, url);
    const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-ca-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const CA_FILE = path.join(folder, "ca.pem");
    await writeFile(CA_FILE, authority.certificate);
    await using proxy = await connectProxy();
    const tunnelsTo = async (host: string, NO_PROXY = "") => {
      const before = proxy.tunnels.length;
      await using program = startProgram(words, {
        GATEHOUSE_URL: `https://${host}:${front.port}`,
        GATEHOUSE_TOKEN: "fake-token",
        CA_FILE,
        HTTPS_PROXY: proxy.url,
        NO_PROXY,
      });
      await program.ended;
      expect(program.output()).toContain("answered 401");
      return proxy.tunnels.slice(before);
    };
    expect(await tunnelsTo("localhost")).toEqual([`localhost:${front.port}`]);
    expect(await tunnelsTo("localhost", "localhost")).toEqual([]);
    expect(await tunnelsTo("127.0.0.1", "10.0.0.0/8")).toEqual([`127.0.0.1:${front.port}`]);
    expect(await tunnelsTo("127.0.0.1", "127.0.0.0/8")).toEqual([]);
  });

  it("ends with 78 where a variable is wrong, and names it", async () => {
    await using program = propose("ftp://gatehouse.example");
    expect(await program.ended).toBe(78);
    expect(program.output()).toMatch(/GATEHOUSE_URL: must be/);
  });
});
