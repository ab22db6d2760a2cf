import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { evidenceOf, sandboxRoots, writeEndorsements } from "../../sandbox/evidence/vendors.ts";
import { listen } from "../../sandbox/listen.ts";
import { findEndorsements } from "../../src/attestation/endorsements.ts";
import { addressOf } from "../../src/attestation/fetch-endorsement.ts";
import { createRefresher } from "../../src/attestation/refresher.ts";
import { createLog } from "../../src/log/log.ts";
import { endorsementsNeeded, verifyEvidence } from "../../src/verifier/verify-evidence.ts";

const dayMs = 86_400_000;
const machine = { measurement: "ab".repeat(48), hardware: "", boot: "first", isDebug: false };
const snp = evidenceOf({ ...machine, platform: "Genoa" });
const turin = evidenceOf({ ...machine, platform: "Turin" });
const tdx = evidenceOf({ ...machine, platform: "TDX" });

const needs = (evidence: Buffer) => {
  const needed = endorsementsNeeded(evidence);
  if (!needed) throw new Error("needs nothing");
  return needed;
};

/** Which file of a filled folder answers which address, and under which header its chain comes. */
const routes: readonly [RegExp, (parts: RegExpExecArray) => [file: string, header?: string]][] = [
  [/^\/root\.der$/, () => ["intel/root.crl"]],
  [
    /pckcrl\?ca=(\w+)&encoding=der$/,
    ([, ca]) => [`intel/pck-${ca}.crl`, "SGX-PCK-CRL-Issuer-Chain"],
  ],
  [/\/qe\/identity$/, () => ["intel/tdx-qe.json", "SGX-Enclave-Identity-Issuer-Chain"]],
  [
    /\/tcb\?fmspc=(\w+)(?:&update=early)?$/,
    ([, fmspc]) => [`intel/tcb/${fmspc}.json`, "TCB-Info-Issuer-Chain"],
  ],
  [/^\/(v[cl]ek)\/v1\/(\w+)\/crl$/, ([, signer, product]) => [`amd/${product}/${signer}.crl`]],
];

/** The vendors on this machine, and a refresher with an empty folder. */
async function vendors(options: { ranOut?: readonly ["Genoa"] } = {}) {
  const root = await mkdtemp(join(tmpdir(), "gatehouse-vendors-"));
  const [theirs, ours] = [join(root, "theirs"), join(root, "ours")];
  await writeEndorsements(theirs, options);
  const asked: string[] = [];
  const weather = { status: 200, size: 0, headers: {} as Record<string, string>, damages: "" };
  const server = createServer((request, response) => {
    const url = request.url ?? "";
    asked.push(url);
    void answer(url).then(
      ({ body, headers }) => response.writeHead(weather.status, headers).end(body),
      () => response.writeHead(404).end(),
    );
  });
  async function answer(url: string) {
    const found = routes.flatMap(([pattern, fileOf]) => {
      const parts = pattern.exec(url);
      return parts ? [fileOf(parts)] : [];
    })[0];
    const [, product, hwid] = /^\/vcek\/v1\/(\w+)\/([0-9a-f]+)\?/.exec(url) ?? [];
    const veks = hwid ? await readdir(join(theirs, `amd/${product}/vcek`)) : [];
    const [file, header] = found ?? [`amd/${product}/vcek/${veks[0] ?? ""}`];
    const body = await readFile(join(theirs, file));
    const chain = header && (await readFile(join(theirs, file.replace(/\.\w+$/, ".pem")), "utf8"));
    if (weather.damages !== "" && file.includes(weather.damages)) body[90] = (body[90] ?? 0) ^ 1;
    return {
      body: weather.size > 0 ? Buffer.alloc(weather.size) : body,
      headers: {
        ...weather.headers,
        ...(header ? { [header]: encodeURIComponent(chain ?? "") } : {}),
      },
    };
  }
  const { url, close } = await listen(server, 0);
  const clock = { now: Date.now() };
  const lines: string[] = [];
  const refresher = createRefresher({
    folder: ours,
    addresses: { intel: url, intelRoot: `${url}/root.der`, amd: url },
    roots: sandboxRoots,
    log: createLog({ level: "debug", write: (line) => void lines.push(line) }),
    now: () => clock.now,
  });
  const verified = async (evidence: Buffer) => {
    const { endorsements } = await findEndorsements(ours, needs(evidence));
    return verifyEvidence(evidence, endorsements, { now: clock.now, roots: sandboxRoots }).is;
  };
  return {
    refresher,
    asked,
    weather,
    clock,
    lines,
    theirs,
    verified,
    async [Symbol.asyncDispose]() {
      await refresher.close();
      await close();
      await rm(root, { recursive: true, force: true });
    },
  };
}

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

  it("renews lists from half of their life on, never certificates of chips, and takes no older one", async () => {
    await using at = await vendors();
    await at.refresher.ensure(needs(snp));
    await at.refresher.round();
    expect(at.asked).toHaveLength(2);
    // The list lives from 10 days ago to in 30 days
    at.clock.now += 15 * dayMs;
    await at.refresher.round();
    expect(at.asked.slice(2)).toEqual(["/vcek/v1/Genoa/crl"]);
    expect(at.lines.join("")).toContain('"stored":"kept"');
    // There was nothing newer: it isn't asked over and over
    await at.refresher.round();
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
    await at.refresher.round();
    expect(at.asked.filter((url) => url.endsWith("/crl"))).toHaveLength(1);
    at.weather.damages = "";
    at.weather.size = 5 * 1024 * 1024;
    at.clock.now += 11_000;
    await at.refresher.round();
    expect(at.lines.join("")).toContain("larger than");
    at.weather.size = 0;
    at.weather.status = 429;
    at.weather.headers = { "retry-after": "600" };
    at.clock.now += 21_000;
    await at.refresher.round();
    expect(at.lines.join("")).toContain("answered 429");
    at.weather.status = 200;
    at.clock.now += 500_000;
    await at.refresher.round();
    expect(at.asked.filter((url) => url.endsWith("/crl"))).toHaveLength(3);
    at.clock.now += 120_000;
    await at.refresher.round();
    expect(await at.verified(snp)).toBe("authentic");
  });

  it("keeps the last good one when the vendor gives one that has ended", async () => {
    await using at = await vendors();
    await at.refresher.ensure(needs(snp));
    await writeEndorsements(at.theirs, { ranOut: ["Genoa"] });
    at.clock.now += 15 * dayMs;
    await at.refresher.round();
    expect(at.lines.join("")).toMatch(/refused: it ended on/);
    expect(await at.verified(snp)).toBe("authentic");
  });
});

describe("where endorsements come from", () => {
  it("is each vendor's own address", () => {
    const at = {
      intel: "https://api.trustedservices.intel.com",
      intelRoot: "https://certificates.trustedservices.intel.com/IntelSGXRootCA.der",
      amd: "https://kdsintf.amd.com",
    };
    expect(addressOf({ is: "intel-tcb-info", fmspc: "90c06f000000", isEarly: true }, at)).toBe(
      "https://api.trustedservices.intel.com/tdx/certification/v4/tcb?fmspc=90c06f000000&update=early",
    );
    expect(addressOf({ is: "amd-list", product: "Genoa", signer: "vlek" }, at)).toBe(
      "https://kdsintf.amd.com/vlek/v1/Genoa/crl",
    );
    const chip = { is: "amd-vcek", product: "Turin", hwid: "0123456789abcdef" } as const;
    expect(addressOf({ ...chip, tcb: "0101010400000051" }, at)).toBe(
      "https://kdsintf.amd.com/vcek/v1/Turin/0123456789abcdef?fmcSPL=01&blSPL=01&teeSPL=01&snpSPL=04&ucodeSPL=81",
    );
  });
});
