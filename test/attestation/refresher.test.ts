import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { request as httpRequest } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { getGlobalDispatcher, setGlobalDispatcher } from "undici";
import { describe, expect, it, onTestFinished } from "vitest";
import { evidenceOf, sandboxRoots, writeEndorsements } from "../../sandbox/evidence/vendors.ts";
import { listEndorsements } from "../../src/attestation/endorsement-folder.ts";
import { addressOf } from "../../src/attestation/refresher.ts";
import { createRefresher } from "../../src/attestation/refresher.ts";
import { silentLog } from "../../src/log/log.ts";
import { useProxies } from "../../src/operate/use-proxies.ts";
import { connectProxy } from "../support/connect-proxy.ts";
import { machine, needs, snp, tdx, turin, vendors } from "./vendors.ts";

const dayMs = 86_400_000;

describe("the refresher of endorsements", () => {
  it("fetches what evidence needs, each once however many ask, and nothing that is there", async () => {
    await using at = await vendors();
    await Promise.all(
      Array.from({ length: 20 }, () =>
        Promise.all([snp, turin, tdx].map((evidence) => at.refresher.ensure(needs(evidence)))),
      ),
    );
    expect(await Promise.all([snp, turin, tdx].map((one) => at.verified(one)))).toEqual(
      Array(3).fill("authentic"),
    );
    expect(at.asked).toContain("/tdx/certification/v4/tcb?fmspc=00a06f000000");
    expect(at.asked).toContain(
      `/vcek/v1/Turin/${"c1".repeat(8)}?fmcSPL=01&blSPL=01&teeSPL=01&snpSPL=04&ucodeSPL=81`,
    );
    expect(new Set(at.asked).size).toBe(9);
    expect(at.asked).toHaveLength(9);
    await at.refresher.ensure(needs(snp));
    expect(at.asked).toHaveLength(9);
  });

  it("reads answers that come packed though nobody asked for that, within the same bounds", async () => {
    await using at = await vendors();
    at.weather.gzips = true;
    await at.refresher.ensure(needs(tdx));
    expect(await at.verified(tdx)).toBe("authentic");
    at.weather.size = 2 * 1024 * 1024;
    await at.refresher.ensure(needs(snp));
    expect(at.lines.filter((line) => line.includes("is larger than"))).not.toEqual([]);
  });

  it("renews lists from half of their life on, never certificates of chips, and takes no older one", async () => {
    await using at = await vendors();
    await at.refresher.ensure(needs(snp));
    await at.refresher.refreshDue();
    expect(at.asked).toHaveLength(2);
    // The list lives from 10 days ago to in 30 days
    at.clock.now += 15 * dayMs;
    await at.refresher.refreshDue();
    expect(at.asked.slice(2)).toEqual(["/vcek/v1/Genoa/crl"]);
    expect(at.lines.join("")).toContain('"stored":"kept"');
    // There was nothing newer: it isn't asked over and over
    await at.refresher.refreshDue();
    expect(at.asked).toHaveLength(3);
    expect(await at.verified(snp)).toBe("authentic");
  });

  it("stores nothing that doesn't hold, whoever sent it, and waits longer after each failure", async () => {
    await using at = await vendors();
    at.weather.damages = "crl";
    await at.refresher.ensure(needs(snp));
    expect(await at.verified(snp)).toBe("unverifiable");
    expect(at.lines.join("")).toMatch(/not-renewed.*refused: /);
    await at.refresher.ensure(needs(snp));
    await at.refresher.refreshDue();
    expect(at.asked.filter((url) => url.endsWith("/crl"))).toHaveLength(1);
    at.weather.damages = "";
    at.weather.size = 5 * 1024 * 1024;
    at.clock.now += 11_000;
    await at.refresher.refreshDue();
    expect(at.lines.join("")).toContain("larger than");
    at.weather.size = 0;
    at.weather.status = 429;
    at.weather.headers = { "retry-after": "600" };
    at.clock.now += 21_000;
    await at.refresher.refreshDue();
    expect(at.lines.join("")).toContain("answered 429");
    at.weather.status = 200;
    at.clock.now += 500_000;
    await at.refresher.refreshDue();
    expect(at.asked.filter((url) => url.endsWith("/crl"))).toHaveLength(3);
    at.clock.now += 120_000;
    await at.refresher.refreshDue();
    expect(await at.verified(snp)).toBe("authentic");
  });

  it("keeps the last good one when the vendor gives one that has ended", async () => {
    await using at = await vendors();
    await at.refresher.ensure(needs(snp));
    await writeEndorsements(at.theirs, { ranOut: ["Genoa"] });
    at.clock.now += 15 * dayMs;
    await at.refresher.refreshDue();
    expect(at.lines.join("")).toMatch(/refused: it ended on/);
    expect(await at.verified(snp)).toBe("authentic");
  });
});

describe("evidence that nobody signed", () => {
  const madeUp = (from: number, many = 60) =>
    Array.from({ length: many }, (_, n) => {
      const bytes = Buffer.from(snp);
      bytes.writeUInt32LE(from + n, 0x1a0);
      return bytes;
    });

  it("makes few calls for chips that it makes up, the rest later, and none for ever", async () => {
    await using at = await vendors();
    const chips = () => at.asked.filter((url) => url.includes("?blSPL=")).length;
    const ensureAll = async () => {
      for (const one of madeUp(1)) await at.refresher.ensure(needs(one));
    };
    at.weather.status = 404;
    await ensureAll();
    expect(chips()).toBe(12);
    expect(at.lines.join("")).toMatch(/endorsements\.postponed.*retries later/);
    await ensureAll();
    expect(chips()).toBe(12);
    // A minute earns six more calls, and half of the budget is kept for chips that are new
    at.clock.now += 60_000;
    await at.refresher.refreshDue();
    expect(chips()).toBe(12);
    at.clock.now += 60_000;
    await at.refresher.refreshDue();
    expect(chips()).toBe(18);
    // Days later each was tried eight times, and nobody asks any longer. A time earns six calls
    for (let time = 0; chips() < 60 * 8; time += 1) {
      expect(time).toBeLessThan(60 * 8);
      at.clock.now += 3_600_000;
      await at.refresher.refreshDue();
    }
    at.clock.now += 10 * dayMs;
    await at.refresher.refreshDue();
    expect(chips()).toBe(60 * 8);
  });

  it("doesn't keep a new VM of a genuine chip from being verified at once", async () => {
    await using at = await vendors();
    at.weather.status = 404;
    for (const one of madeUp(1)) await at.refresher.ensure(needs(one));
    at.clock.now += 120_000;
    await at.refresher.refreshDue();
    at.weather.status = 200;
    await at.refresher.ensure(needs(snp));
    expect(at.asked.at(-1)).toContain(`/vcek/v1/Genoa/${"c1".repeat(8)}`);
    // The list had failed, too
    at.clock.now += 60_000;
    await at.refresher.refreshDue();
    expect(await at.verified(snp)).toBe("authentic");
  });

  it("makes no call at all where a quote's chain isn't Intel's", async () => {
    await using at = await vendors();
    const strange = evidenceOf({ ...machine, platform: "TDX" }, { isStranger: true });
    await at.refresher.ensure(needs(strange));
    await at.refresher.refreshDue();
    expect(at.asked).toEqual([]);
  });

  it("fills no memory: what is over a few hundred chips is forgotten", async () => {
    await using at = await vendors();
    at.weather.status = 404;
    const [first = snp] = madeUp(1000, 1);
    const chip = first.toString("hex", 0x1a0, 0x1e0);
    const asked = () => at.asked.filter((url) => url.includes(chip)).length;
    await at.refresher.ensure(needs(first));
    for (let hour = 0; hour < 7; hour += 1) {
      at.clock.now += 3_600_000;
      await at.refresher.refreshDue();
    }
    expect(asked()).toBe(8);
    // It failed so often that it is due in half an hour at the earliest
    at.clock.now += 180_000;
    await at.refresher.ensure(needs(first));
    expect(asked()).toBe(8);
    for (const one of madeUp(1, 270)) await at.refresher.ensure(needs(one));
    at.clock.now += 120_000;
    await at.refresher.ensure(needs(first));
    expect(asked()).toBe(9);
  });
});

/** The vendors behind TLS, as they are in the world. */
async function overTls(url: string) {
  const pem = await readFile(
    join(import.meta.dirname, "../fleet/compute/certificates/localhost.pem"),
  );
  const before = getCACertificates("default");
  setDefaultCACertificates([
    ...before,
    pem.toString().replace(/-----BEGIN PRIVATE[^]*?PRIVATE KEY-----/, ""),
  ]);
  const server = createServer({ cert: pem, key: pem }, (asked, answer) => {
    httpRequest(`${url}${asked.url}`, (found) => {
      answer.writeHead(found.statusCode ?? 502, found.headers);
      found.pipe(answer);
    }).end();
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  const host = `localhost:${(server.address() as AddressInfo).port}`;
  return {
    host,
    [Symbol.asyncDispose]: async () => {
      setDefaultCACertificates(before);
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

describe("a proxy", () => {
  it("carries what is fetched, by CONNECT, unless NO_PROXY names the vendor", async () => {
    const direct = getGlobalDispatcher();
    onTestFinished(() => setGlobalDispatcher(direct));
    await using proxy = await connectProxy();
    await using at = await vendors();
    await using tls = await overTls(at.addresses.amd);
    const base = `https://${tls.host}`;
    const addresses = { intel: base, intelRoot: `${base}/root.der`, amd: base };
    const fetchedBy = async (no: string, into: string) => {
      const folder = join(at.ours, into);
      const proxies = { https: proxy.url, http: undefined, no };
      const by = { folder, addresses, roots: sandboxRoots, log: silentLog() };
      useProxies(proxies);
      const refresher = createRefresher({ ...by, now: Date.now });
      await refresher.ensure(needs(snp));
      await refresher.close();
      return listEndorsements(folder, { roots: sandboxRoots, now: Date.now() });
    };
    expect(await fetchedBy("", "through")).toHaveLength(2);
    expect([...new Set(proxy.tunnels)]).toEqual([tls.host]);
    const many = proxy.tunnels.length;
    expect(await fetchedBy("localhost", "direct")).toHaveLength(2);
    expect(proxy.tunnels).toHaveLength(many);
  });
});

describe("where endorsements come from", () => {
  it("is each vendor's own address", () => {
    const at = {
      intel: "https://api.trustedservices.intel.com",
      intelRoot: "https://certificates.trustedservices.intel.com/IntelSGXRootCA.der",
      amd: "https://kdsintf.amd.com",
    };
    expect(
      addressOf({ document: "intel-tcb-info", fmspc: "90c06f000000", early: ".early" }, at),
    ).toBe(
      "https://api.trustedservices.intel.com/tdx/certification/v4/tcb?fmspc=90c06f000000&update=early",
    );
    expect(addressOf({ document: "amd-list", product: "Genoa", signer: "vlek" }, at)).toBe(
      "https://kdsintf.amd.com/vlek/v1/Genoa/crl",
    );
    const chip = { document: "amd-vcek", product: "Turin", hwid: "0123456789abcdef" } as const;
    expect(addressOf({ ...chip, tcb: "0101010400000051" }, at)).toBe(
      "https://kdsintf.amd.com/vcek/v1/Turin/0123456789abcdef?fmcSPL=01&blSPL=01&teeSPL=01&snpSPL=04&ucodeSPL=81",
    );
  });
});
