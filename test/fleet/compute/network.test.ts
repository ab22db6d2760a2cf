import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import type { TLSSocket } from "node:tls";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ChangingFile } from "../../../src/config/changing-file.ts";
import { connectProxy } from "../../support/connect-proxy.ts";
import { answering, clientOf, failureOf, key, says, vmRecord } from "./answering.ts";

const pem = (name: string) =>
  readFileSync(join(import.meta.dirname, "certificates", `${name}.pem`), "utf8");
const trusting = (name: string) => () => ({ ca: pem(name), cert: undefined, key: undefined });

describe("a client certificate", () => {
  it("is shown where the service asks for one, and another one is shown once the files have changed", async () => {
    const shown: unknown[] = [];
    const server = createServer(
      {
        key: pem("localhost"),
        cert: pem("localhost"),
        requestCert: true,
        ca: [pem("localhost"), pem("other-host")],
      },
      (request, response) => {
        shown.push((request.socket as TLSSocket).getPeerCertificate().subject.CN);
        response.setHeader("connection", "close");
        says(vmRecord)(request, response);
      },
    ).listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const tls = { ca: pem("localhost"), cert: pem("localhost"), key: pem("localhost") };
    await using compute = clientOf(`https://localhost:${port}`, { tls: () => tls });
    await compute.vms.get("vm-1");
    await compute.vms.restart("vm-1");
    tls.cert = pem("other-host");
    await compute.vms.restart("vm-1"); // with the other's key they don't fit together: not yet
    tls.key = pem("other-host");
    await compute.vms.restart("vm-1");
    server.close();
    server.closeAllConnections();
    expect(shown).toEqual([
      "localhost",
      "localhost",
      "localhost",
      expect.not.stringContaining("localhost"),
    ]);
    // Without one the service refuses
    await using bare = clientOf(`https://localhost:${port}`, { tls: trusting("localhost") });
    expect(await failureOf(bare.vms.restart("vm-1"))).toMatchObject({
      kind: expect.stringMatching(/unreachable|unclear/),
    });
  });
});

describe("through a proxy", () => {
  it("reads and changes reach the service, and the proxy sees neither key nor path", async () => {
    await using proxy = await connectProxy();
    await using server = await answering(says(vmRecord), pem("localhost"));
    await using compute = clientOf(server.url, { tls: trusting("localhost"), proxy: proxy.url });
    expect((await compute.vms.get("vm-1")).name).toBe("web-1");
    expect((await compute.vms.restart("vm-1")).vm?.name).toBe("web-1");
    expect(server.asked).toEqual(["GET /v1/vms/vm-1", "POST /v1/vms/vm-1/restart"]);
    const { host } = new URL(server.url);
    expect(proxy.tunnels).toEqual([host, host]);
    expect(proxy.carried()).not.toContain("vm-1");
    expect(proxy.carried()).not.toContain(key);
  });

  it("a certificate is checked as without one", async () => {
    await using proxy = await connectProxy();
    await using server = await answering(says(vmRecord), pem("other-host"));
    const tls = trusting("other-host");
    await using compute = clientOf(server.url, { tls, proxy: proxy.url });
    expect(await failureOf(compute.vms.restart("vm-1"))).toMatchObject({
      kind: "unreachable",
      reason: "tls",
    });
    expect(server.asked).toEqual([]);
  });

  it.each([407, 403, 502])("nothing was sent when the proxy answers %i", async (status) => {
    await using proxy = await connectProxy();
    proxy.answerWith(status);
    await using server = await answering(says(vmRecord), pem("localhost"));
    await using compute = clientOf(server.url, { tls: trusting("localhost"), proxy: proxy.url });
    const reason = status === 407 ? "proxy-login" : "proxy";
    for (const call of [() => compute.vms.restart("vm-1"), () => compute.vms.get("vm-1")])
      expect(await failureOf(call())).toMatchObject({ kind: "unreachable", reason });
    expect(server.connections()).toBe(0);
  });

  it("nothing was sent when the proxy is not there", async () => {
    await using server = await answering(says(vmRecord), pem("localhost"));
    const tls = trusting("localhost");
    await using compute = clientOf(server.url, { tls, proxy: "http://127.0.0.1:9" });
    expect(await failureOf(compute.vms.restart("vm-1"))).toMatchObject({
      kind: "unreachable",
      reason: "connect",
    });
    expect(server.connections()).toBe(0);
  });
});

describe("a key in a file that changes", () => {
  /** A service that takes one key, and a client whose key is in a file, as Kubernetes mounts it. */
  async function world() {
    const folder = mkdtempSync(join(tmpdir(), "gatehouse-key-"));
    const path = join(folder, "key");
    writeFileSync(path, "key-old-1\n");
    const file = new ChangingFile(path);
    const accepts = { key: "key-old-1" };
    const server = await answering((request, response) => {
      const isRight = request.headers.authorization === `Bearer ${accepts.key}`;
      says(isRight ? vmRecord : { error: "no" }, isRight ? 200 : 401)(request, response);
    });
    const compute = clientOf(server.url, {
      apiKey: () => file.text,
      refreshKey: () => file.reread(),
    });
    return {
      write: (text: string) => writeFileSync(path, text),
      accepts,
      server,
      compute,
      async [Symbol.asyncDispose]() {
        await compute.close();
        await server[Symbol.asyncDispose]();
        rmSync(folder, { recursive: true });
      },
    };
  }

  it("is looked at after a 401 by all calls that it meets at once, not by the first alone", async () => {
    await using at = await world();
    at.accepts.key = "key-new-2";
    at.write("key-new-2");
    const reads = Array.from({ length: 8 }, () => at.compute.vms.get("vm-1"));
    expect(await Promise.all(reads)).toHaveLength(8);
  });

  it("is looked at after a 401: a read goes on with the new one, once", async () => {
    await using at = await world();
    at.accepts.key = "key-new-2";
    expect(await failureOf(at.compute.vms.get("vm-1"))).toMatchObject({ status: 401 });
    expect(at.server.asked).toHaveLength(1);
    at.write("key-new-2\n");
    expect((await at.compute.vms.get("vm-1")).name).toBe("web-1");
    expect(at.server.asked).toHaveLength(3);
    at.write("key-of-another\n");
    at.accepts.key = "nobody's";
    expect(await failureOf(at.compute.vms.get("vm-1"))).toMatchObject({ status: 401 });
    expect(at.server.asked).toHaveLength(5);
  });

  it("is looked at before each change, which is sent once and never again", async () => {
    await using at = await world();
    at.write("key-new-2\n");
    at.accepts.key = "key-new-2";
    expect((await at.compute.vms.restart("vm-1")).vm?.name).toBe("web-1");
    expect(at.server.asked).toHaveLength(1);
    at.accepts.key = "key-next-3";
    const refused = await failureOf(at.compute.vms.restart("vm-1"));
    expect(refused).toMatchObject({ kind: "refused", status: 401, hasNewKey: false });
    expect(at.server.asked).toHaveLength(2);
  });

  it("is known to have changed while a change was under way, so that nobody freezes for it", async () => {
    await using at = await world();
    at.accepts.key = "key-next-3";
    const slow = at.compute.onlyWhile(async () => {
      at.write("key-next-3\n"); // after the key was taken for this call
      return true;
    });
    expect(await failureOf(slow.vms.restart("vm-1"))).toMatchObject({
      status: 401,
      hasNewKey: true,
    });
    expect(at.server.asked).toHaveLength(1);
  });
});
