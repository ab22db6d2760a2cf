import { cp, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { sandboxRoots, writeEndorsements } from "../../sandbox/evidence/vendors.ts";
import { runAttestation } from "../../src/cli/attestation.ts";
import { listEndorsements, storeEndorsement } from "../../src/attestation/endorsement-folder.ts";
import { inspectEndorsement } from "../../src/verifier/inspect-endorsement.ts";
import { vendorRoots } from "../../src/verifier/roots.ts";
import { intelOf, readVectorFile, vectorOf } from "../verifier/vectors.ts";

const dayMs = 86_400_000;

/** Two folders of the sandbox's endorsements, one filled, and the terminal. */
async function folders(options: Parameters<typeof writeEndorsements>[1] = {}) {
  const root = await mkdtemp(join(tmpdir(), "gatehouse-folder-"));
  const [there, here] = [join(root, "medium"), join(root, "here")];
  await writeEndorsements(there, options);
  const run = async (words: string[], now = Date.now()) => {
    let said = "";
    const code = await runAttestation([...words, "--endorsements", here], {
      write: (text) => void (said += text),
      now: () => now,
      roots: sandboxRoots,
    });
    return { code, said };
  };
  return {
    there,
    here,
    run,
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }),
  };
}

describe("a folder of endorsements", () => {
  it("is filled from a medium, each checked up to the roots, and says until when it holds", async () => {
    await using at = await folders();
    const imported = await at.run(["import", at.there]);
    expect(imported.said).toContain("intel/tcb/00a06f000000.json: imported\n");
    expect(imported.said).toContain("amd/Genoa/vcek.crl: imported\n");
    expect(imported.said.match(/: imported\n/g)).toHaveLength(10);
    expect(imported.code).toBe(0);
    const status = await at.run(["status"]);
    expect(status.said).toMatch(/^good until \d{4}-\d\d-\d\d \((24|25) days\) +intel\//);
    expect(status.code).toBe(0);
    const again = await at.run(["import", join(at.there, "intel/root.crl")]);
    expect(again.said).toBe("intel/root.crl: kept what is there, which is as new or newer\n");
    expect(
      (await readdir(at.here, { recursive: true })).filter((name) => name.endsWith(".new")),
    ).toEqual([]);
  });

  it("takes nothing that was changed, has ended, or is another's, and says which of what is there doesn't hold", async () => {
    await using at = await folders({ ranOut: ["Turin"] });
    const list = await readFile(join(at.there, "amd/Genoa/vcek.crl"));
    list[200] = (list[200] ?? 0) ^ 1;
    await writeFile(join(at.there, "amd/Genoa/vcek.crl"), list);
    await cp(join(at.there, "amd/Milan/vcek.crl"), join(at.there, "amd/Milan/vlek.crl"));
    await cp(join(at.there, "amd/Milan/vcek.crl"), join(at.there, "amd/Genoa/vlek.crl"));
    await rm(join(at.there, "intel/pck-platform.pem"));
    const { code, said } = await at.run(["import", at.there]);
    expect(code).toBe(1);
    expect(said).toMatch(/amd\/Genoa\/vcek\.crl: refused: /);
    expect(said).toMatch(/amd\/Genoa\/vlek\.crl: refused: the revocation list is another issuer's/);
    expect(said).toMatch(/amd\/Turin\/vcek\.crl: refused: it ended on /);
    expect(said).toMatch(/intel\/pck-platform\.crl: refused: its chain is missing/);
    await cp(at.there, at.here, { recursive: true });
    const status = await at.run(["status"]);
    expect(status.code).toBe(1);
    expect(status.said.match(/^BAD /gm)).toHaveLength(4);
    expect(status.said).toMatch(/BAD  ended on .*amd\/Turin\/vcek\.crl/);
  });

  it("never puts an older one over a newer", async () => {
    await using at = await folders();
    const name = "intel/tcb/90c06f000000.json";
    const [older, newer] = ["tdx-v5-uptodate", "tdx-v5-uptodate-refreshed"].map((id) => {
      const { body = "", chain = "" } = intelOf(vectorOf(id).collateral ?? "").tcbInfo ?? {};
      return { content: Buffer.from(body), chain };
    });
    if (!older || !newer) throw new Error("no vectors");
    const on = { now: Date.parse("2026-03-17T00:00:00Z"), roots: vendorRoots };
    expect(await storeEndorsement(at.here, name, older, on)).toBe("stored");
    expect(await storeEndorsement(at.here, name, newer, on)).toBe("stored");
    expect(await storeEndorsement(at.here, name, older, on)).toBe("kept");
    expect(
      await storeEndorsement(at.here, name, newer, { ...on, now: on.now + 90 * dayMs }),
    ).toEqual({
      refused: expect.stringMatching(/^it ended on 2026-04-/),
    });
    expect(await storeEndorsement(at.here, "../x.json", newer, on)).toHaveProperty("refused");
    const other = await storeEndorsement(at.here, "intel/tcb/50806f000000.json", newer, on);
    expect(other).toEqual({ refused: expect.stringContaining("of another platform") });
    const [listed] = await listEndorsements(at.here, on);
    expect(listed).toMatchObject({ name, inspected: { from: expect.any(Number) } });
  });

  it("knows AMD's genuine lists and certificates", () => {
    const inspect = (kind: Parameters<typeof inspectEndorsement>[0], file: string) =>
      inspectEndorsement(
        kind,
        { content: readVectorFile(file) },
        { roots: vendorRoots, now: Date.now() },
      );
    for (const product of ["Milan", "Genoa", "Turin"] as const) {
      const list = `amd/${product.toLowerCase()}-crl.der`;
      expect(inspect({ document: "amd-list", product, signer: "vcek" }, list)).toHaveProperty(
        "until",
      );
    }
    const { parsed, vek = "" } = vectorOf("snp-genoa-v5");
    const kind = {
      document: "amd-vcek",
      product: "Genoa",
      hwid: String(parsed?.["chipId"]),
      tcb: String(parsed?.["reportedTcb"]),
    } as const;
    expect(inspect(kind, vek)).toHaveProperty("until");
    expect(inspect({ ...kind, hwid: "00".repeat(64) }, vek)).toEqual({
      problem: "the certificate is of another chip",
    });
    expect(inspect({ ...kind, tcb: "00".repeat(8) }, vek)).toEqual({
      problem: expect.stringContaining("of other firmware"),
    });
    expect(inspect({ ...kind, product: "Milan" }, vek)).toHaveProperty("problem");
  });

  it("knows what nobody of a vendor's has signed", async () => {
    await using at = await folders();
    const { vek: forged = "" } = vectorOf("snp-forged-vcek");
    const genuine = vectorOf("snp-milan-v3").parsed;
    const chip = {
      document: "amd-vcek",
      product: "Milan",
      hwid: String(genuine?.["chipId"]),
      tcb: String(genuine?.["reportedTcb"]),
    } as const;
    const vendors = { roots: vendorRoots, now: Date.now() };
    expect(inspectEndorsement(chip, { content: readVectorFile(forged) }, vendors)).toEqual({
      problem: "the signature on the VCEK does not hold",
    });
    const sandbox = { roots: sandboxRoots, now: Date.now() };
    const [name, ca] = ["intel/pck-platform.crl", "intel/pck-platform.pem"];
    const other = await readFile(join(at.there, "intel/tdx-qe.pem"), "latin1");
    const listed = { document: "intel-pck-list", ca: "platform" } as const;
    const list = await readFile(join(at.there, name));
    const chain = await readFile(join(at.there, ca), "latin1");
    expect(inspectEndorsement(listed, { content: list, chain }, sandbox)).toHaveProperty("until");
    expect(inspectEndorsement(listed, { content: list, chain: other }, sandbox)).toEqual({
      problem: expect.stringContaining("is not who should have signed"),
    });
    const [first = "", ...rest] = chain.split("-----END");
    const lines = first.trimEnd().split("\n");
    const last = lines.at(-1) ?? "";
    // In the signature, at the end of the CA's certificate
    const broken = [...lines.slice(0, -1), `${last[0] === "A" ? "B" : "A"}${last.slice(1)}`];
    const badChain = [`${broken.join("\n")}\n`, ...rest].join("-----END");
    expect(inspectEndorsement(listed, { content: list, chain: badChain }, sandbox)).toEqual({
      problem: "the signature on Intel SGX PCK Platform CA does not hold",
    });
    const body = await readFile(join(at.there, "intel/tdx-qe.json"), "utf8");
    const changed = Buffer.from(body.replace('"isvprodid":2', '"isvprodid":3'));
    expect(
      inspectEndorsement(
        { document: "intel-qe-identity" },
        { content: changed, chain: other },
        sandbox,
      ),
    ).toEqual({
      problem: expect.stringContaining("identity of the quoting enclave does not hold"),
    });
  });

  it("has to be named", async () => {
    const said: string[] = [];
    const code = await runAttestation(["status"], { write: (text) => void said.push(text) });
    expect(code).toBe(2);
    expect(said.join("")).toContain("attestation.endorsements in gatehouse.yml");
  });
});
