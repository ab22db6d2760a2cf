import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { sandboxRoots, writeEndorsements } from "../../sandbox/evidence/vendors.ts";
import { runAttestation } from "../../src/cli/attestation.ts";
import {
  findEndorsements,
  listEndorsements,
  storeEndorsement,
} from "../../src/attestation/endorsement-folder.ts";
import { gateRefusal } from "../../src/attestation/appraise.ts";
import { createEvidenceRegister } from "../../src/attestation/appraiser.ts";
import type { Compute } from "../../src/fleet/compute/compute.ts";
import { emptyPolicy } from "../../src/config/policy-file.ts";
import { sandboxAppraiser } from "../support/appraiser.ts";
import { parseCertificate } from "../../src/verifier/certificate.ts";
import { inspectEndorsement } from "../../src/verifier/inspect-endorsement.ts";
import { vendorRoots } from "../../src/verifier/roots.ts";
import { mintSnp } from "../../sandbox/evidence/mint-snp.ts";
import { mintTdx } from "../../sandbox/evidence/mint-tdx.ts";
import { quickest } from "../support/quickest.ts";
import { testRedis } from "../support/with-redis.ts";
import { createMints, dayMs, mintedAt } from "../verifier/judging.ts";

async function folder() {
  const root = await mkdtemp(join(tmpdir(), "gatehouse-outside-"));
  return { root, [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }) };
}

/** What stands where a file should. */
const instead: readonly [what: string, put: (path: string) => Promise<unknown>, says: RegExp][] = [
  [
    "a pipe that nobody writes to",
    async (path) => execFileSync("mkfifo", [path]),
    /not a regular file/,
  ],
  ["a folder", (path) => mkdir(path), /not a regular file/],
  ["a link to a device without an end", (path) => symlink("/dev/zero", path), /not a regular file/],
  [
    "a file of 1 GB",
    async (path) => {
      await writeFile(path, "");
      await truncate(path, 1024 ** 3);
    },
    /too large/,
  ],
];

describe("a file from outside", () => {
  it.each(instead)("is named and skipped when it is %s", async (_what, put, says) => {
    await using at = await folder();
    await writeEndorsements(at.root);
    const name = "amd/Genoa/vcek.crl";
    const path = join(at.root, name);
    await rm(path);
    await put(path);
    const by = { roots: sandboxRoots, now: Date.now() };
    const listed = await listEndorsements(at.root, by);
    expect(listed.find((one) => one.name === name)?.inspected).toEqual({
      problem: expect.stringMatching(says),
    });
    expect(listed.filter(({ inspected }) => "problem" in inspected)).toHaveLength(1);
    const needed = {
      tee: "snp",
      product: "Genoa",
      signer: "VCEK",
      chipId: "c1".repeat(64),
      reportedTcb: "00".repeat(8),
    } as const;
    const { absent } = await findEndorsements(at.root, needed);
    expect(absent.find((one) => one.startsWith(name))).toMatch(says);
    let said = "";
    const write = (text: string) => void (said += text);
    expect(await runAttestation(["check", path], { write })).toBe(2);
    expect(said).toMatch(/is not a regular file|is a folder|could not verify|larger than/i);
  });
});

/** `30 83 … 05 00 05 00 …`: as long as may be. */
function nulls(size: number): Buffer {
  const content = Buffer.alloc(size);
  for (let at = 0; at < size; at += 2) content[at] = 5;
  const head = Buffer.from([0x30, 0x83, 0, 0, 0]);
  head.writeUIntBE(size, 2, 3);
  return Buffer.concat([head, content]);
}

describe("DER that nobody signed", () => {
  it("takes no time, however long it is and wherever it stands", () => {
    const [list, der] = [nulls(4 * 1024 * 1024), nulls(1_000_000)];
    const roots = vendorRoots;
    const tookMs = quickest(() => {
      for (const content of [list, der, Buffer.concat([Buffer.from([0x30, 0x83]), der])]) {
        for (const kind of [
          { document: "intel-root-list" },
          { document: "amd-list", product: "Genoa", signer: "vcek" },
          { document: "amd-vcek", product: "Genoa", hwid: "00", tcb: "00" },
        ] as const)
          expect(inspectEndorsement(kind, { content }, { roots, now: 0 })).toHaveProperty(
            "problem",
          );
        expect(parseCertificate(content)).toBeUndefined();
      }
    });
    // Tens of ms of CPU time, and seconds where each value was read
    expect(tookMs).toBeLessThan(1_000);
  });
});

describe("an endorsement that is older, and not over yet", () => {
  it("never replaces a list with a higher number, whatever the days say", async () => {
    await using at = await folder();
    const mints = createMints();
    const crl = (number: number, days: number) => ({
      content:
        mintSnp(mints.amd, mintedAt, { crl: { number, from: mintedAt - days * dayMs } })
          .endorsements.crl ?? Buffer.alloc(0),
    });
    const { roots } = mintSnp(mints.amd, mintedAt, {});
    const by = { now: mintedAt, roots: roots(vendorRoots) };
    const store = (files: { content: Buffer }) =>
      storeEndorsement(at.root, "amd/Genoa/vcek.crl", files, by);
    expect(await store(crl(9, 5))).toBe("stored");
    expect(await store(crl(8, 1))).toBe("kept");
    expect(await store(crl(10, 6))).toBe("stored");
    expect(await store(crl(10, 6))).toBe("kept");
    expect(await store(crl(0, 7))).toBe("kept");
    expect(await store(crl(0, 4))).toBe("stored");
  });

  it("never replaces a statement with a higher evaluation number", async () => {
    await using at = await folder();
    const { intel } = createMints();
    const mint = (number: number, day: string) =>
      mintTdx(intel, mintedAt, {
        rootCertificate: first.certificates.root,
        tcbInfo: (info) =>
          void Object.assign(info, { tcbEvaluationDataNumber: number, issueDate: day }),
      }).endorsements.tcbInfo;
    const first = mintTdx(intel, mintedAt);
    const by = { now: mintedAt, roots: first.roots(vendorRoots) };
    const store = (number: number, day: string) => {
      const { body = "", chain = "" } = mint(number, day) ?? {};
      const fmspc = /"fmspc":"(\w+)"/.exec(body)?.[1] ?? "";
      const files = { content: Buffer.from(body), chain };
      return storeEndorsement(at.root, `intel/tcb/${fmspc.toLowerCase()}.json`, files, by);
    };
    expect(await store(30, "2026-05-20T00:00:00Z")).toBe("stored");
    expect(await store(29, "2026-05-25T00:00:00Z")).toBe("kept");
    expect(await store(31, "2026-05-19T00:00:00Z")).toBe("stored");
  });
});

describe("the register of evidence", () => {
  it("remembers for 90 days from the last sight, not from the first", async () => {
    await using at = await testRedis();
    const register = createEvidenceRegister(at.redis, at.key);
    const marks = { digest: "aa", reportId: "bb" };
    await register.seen("vm-1", marks, undefined);
    const keys = [at.key("evidence", "aa"), at.key("evidence", "bb")];
    for (const key of keys) await at.redis.pexpire(key, dayMs);
    expect(await register.seen("vm-1", marks, undefined)).toBeUndefined();
    for (const key of keys) expect(await at.redis.pttl(key)).toBeGreaterThan(89 * dayMs);
    expect(await register.seen("vm-2", marks, undefined)).toBe("under another VM");
  });

  it("knows when a VM's evidence was seen last, which no word of the service ends", async () => {
    await using at = await testRedis();
    const register = createEvidenceRegister(at.redis, at.key);
    expect(await register.lastSeen("vm-1")).toBeUndefined();
    await register.seen("vm-1", { digest: "cc" }, undefined);
    expect(await register.lastSeen("vm-1")).toBeGreaterThan(Date.now() - 60_000);
    const off = { id: "vm-1", projectId: "p-1", name: "web-1", status: "RUNNING" };
    const compute = {
      vms: {
        get: async () => ({ ...off, attestation: { enabled: false } }),
        attestation: () => Promise.reject(new Error("none")),
      },
    } as unknown as Compute;
    const appraiser = sandboxAppraiser({ compute, policy: emptyPolicy(), ...at });
    expect(await appraiser.isAskedOf({ ...off, projectName: "shop" }, [])).toBe(true);
    const { appraisal } = await appraiser.attest({ ...off, projectName: "shop" });
    expect(appraisal).toMatchObject({ isOff: false, isAsked: true, isJudged: true });
    expect(gateRefusal(appraisal)).toMatch(/but its evidence was seen before/);
    expect(await appraiser.isAskedOf({ ...off, id: "vm-2", projectName: "shop" }, [])).toBe(false);
  });
});
