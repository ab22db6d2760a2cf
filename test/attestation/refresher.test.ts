import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { evidenceOf, sandboxRoots, writeEndorsements } from "../../sandbox/evidence/vendors.ts";
import { listEndorsements } from "../../src/attestation/endorsement-folder.ts";
import { findEndorsements } from "../../src/attestation/endorsements.ts";
import { addressOf } from "../../src/attestation/fetch-endorsement.ts";
import { createRefresher } from "../../src/attestation/refresher.ts";
import { createLog } from "../../src/log/log.ts";
import { endorsementsNeeded, verifyEvidence } from "../../src/verifier/verify-evidence.ts";
import { startChild } from "../faults/stage/child.ts";
import { startVendors } from "../support/vendor-server.ts";

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

/** The vendors on this machine, and a refresher with an empty folder. */
async function vendors({ onServed = () => undefined as unknown } = {}) {
  const root = await mkdtemp(join(tmpdir(), "gatehouse-vendors-"));
  const [theirs, ours] = [join(root, "theirs"), join(root, "ours")];
  await writeEndorsements(theirs);
  const { asked, weather, addresses, close } = await startVendors(theirs, onServed);
  const clock = { now: Date.now() };
  const lines: string[] = [];
  const refresher = createRefresher({
    folder: ours,
    addresses,
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
    ours,
    addresses,
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

  it("leaves no part of a file when its process is killed between an answer and its file; the next one goes on", async () => {
    let serve = () => undefined as unknown;
    await using at = await vendors({ onServed: () => serve() });
    const evidence = [snp, turin, tdx].map((one) => one.toString("base64"));
    const files = async () =>
      listEndorsements(at.ours, { roots: sandboxRoots, now: Date.now() }).catch(() => []);
    // As soon as an answer has left, and while files are written
    for (const afterMs of [0, 2, 4]) {
      const told = JSON.stringify({ folder: at.ours, addresses: at.addresses, evidence });
      const child = await startChild("test/attestation/refreshing.ts", [told]);
      serve = () => setTimeout(() => child.signal("SIGKILL"), afterMs);
      child.say({ begin: true });
      expect(await child.exited).toBe("SIGKILL");
      const broken = (await files()).filter(({ inspected }) => "problem" in inspected);
      expect(broken).toEqual([]);
    }
    serve = () => undefined;
    await Promise.all([snp, turin, tdx].map((one) => at.refresher.ensure(needs(one))));
    expect(await Promise.all([snp, turin, tdx].map((one) => at.verified(one)))).toEqual(
      Array(3).fill("authentic"),
    );
    // What an answer had brought, and no file had, was asked for again
    expect(at.asked.length).toBeGreaterThan(9);
    expect(new Set(at.asked).size).toBe(9);
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
