import { createHash, generateKeyPairSync, sign } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { bundleOf, type Signing } from "../../src/attestation/bundle.ts";
import { runAttestation } from "../../src/cli/attestation.ts";
import { appraisalOptions, appraise } from "../../src/attestation/appraise.ts";
import { runCommandLine } from "../../src/cli/command-line.ts";
import { printable } from "../../src/text/terminal.ts";
import { createJudging, createMints } from "../verifier/judging.ts";
import { good, snp } from "./reports.ts";

function signer(): { signing: Signing; key: string; sha256: string } {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const key = publicKey.export({ type: "spki", format: "der" }).toString("base64");
  const sha256 = createHash("sha256").update(Buffer.from(key, "base64")).digest("hex");
  const its = {
    publicKey: key,
    sign: (text: string) => sign(null, Buffer.from(text), privateKey).toString("base64"),
  };
  return { signing: { signer: its, auditHead: { seq: 7, hash: "ab" } }, key, sha256 };
}

const vm = { id: "vm-1", name: "web-1", projectId: "p-1" };

/** A VM that is verified, with all that it follows from. */
function attested(over: Parameters<typeof good>[0] = {}) {
  const evidence = snp();
  const input = good({ evidence, ...over });
  const { roots } = evidence;
  const { report } = input;
  if ("error" in report) throw new Error("no report");
  const basis = { endorsements: evidence.endorsements, options: appraisalOptions(input) };
  const pins = { from: "gatehouse.yml", values: input.pins } as const;
  return {
    roots,
    its: {
      vm: { ...vm, status: "RUNNING" } as never,
      appraisal: appraise(input),
      report,
      pins,
      basis,
    },
  };
}

async function checked(
  bundle: unknown,
  roots: ReturnType<typeof attested>["roots"],
  ...words: string[]
) {
  const folder = await mkdtemp(join(tmpdir(), "gatehouse-bundle-"));
  try {
    const file = join(folder, "evidence.json");
    await writeFile(file, JSON.stringify(bundle));
    let said = "";
    const write = (text: string) => void (said += text);
    const code = await runAttestation(["check", file, ...words], { write, roots });
    return { code, said, first: said.split("\n")[0] ?? "" };
  } finally {
    await rm(folder, { recursive: true });
  }
}

describe("a bundle", () => {
  const { roots, its } = attested();
  const [ours, other] = [signer(), signer()];
  const of = (named: typeof vm) => ({ vm: named, attested: its });
  const bundle = bundleOf([of(vm)], ours.signing);
  const fleet = bundleOf([of(vm), of({ ...vm, id: "vm-2", name: "web-2" })], ours.signing);

  it.each([
    ["of one VM", bundle],
    ["of a fleet", fleet],
  ])("%s is verified for whoever names its signer, by any name of the key", async (_what, made) => {
    for (const name of [ours.key, ours.sha256, ours.sha256.slice(0, 16)]) {
      const { code, said } = await checked(made, roots, "--signer", name);
      expect(said).toContain(
        `as signed by the key ${ours.sha256.slice(0, 16)}, which --signer names`,
      );
      expect(code).toBe(0);
    }
  });

  it.each([
    ["of one VM", bundle],
    ["of a fleet", fleet],
  ])("%s is not verified where nobody says who may sign", async (_what, made) => {
    const { code, first } = await checked(made, roots);
    expect(first).toMatch(/^Could not verify: the bundle is signed by the key .* --signer/);
    expect(code).toBe(2);
  });

  it("fails when another key signed it, or it was changed", async () => {
    const words = ["--signer", ours.sha256];
    const stranger = await checked(bundleOf([of(vm)], other.signing), roots, ...words);
    expect(stranger.first).toMatch(/^Failed: .* none that --signer names\.$/);
    expect(stranger.code).toBe(1);
    const later = { ...bundle, vms: bundle.vms.map((one) => ({ ...one, at: one.at + 1 })) };
    const changed = await checked(later, roots, ...words);
    expect(changed.first).toBe("Failed: the bundle was changed after it was signed.");
    expect(changed.code).toBe(1);
    const claimed = await checked({ ...bundle, signedBy: other.key }, roots, "--signer", other.key);
    expect(claimed.code).toBe(1);
  });

  it("is not verified without its signature, whether it names its signer or not", async () => {
    const { signature: _, ...stripped } = bundle;
    const { signedBy: _by, ...bare } = stripped;
    const unsigned = bundleOf([of(vm)], { signer: undefined, auditHead: undefined });
    for (const made of [stripped, bare, unsigned]) {
      const { code, first } = await checked(made, roots, "--signer", ours.sha256);
      expect(first).toMatch(/^Could not verify: nobody signed the bundle/);
      expect(code).toBe(2);
    }
  });

  it("keeps what spoke against the evidence beside it: the terminal says what Slack said", async () => {
    const older = attested({ says: { timestamp: "2025-12-31T23:00:00Z" } });
    const made = bundleOf([{ vm, attested: older.its }], ours.signing);
    const { code, first } = await checked(made, older.roots, "--signer", ours.key);
    expect(first).toBe("Could not verify: the report is older than the VM.");
    expect([code, made.vms[0]?.verdict]).toEqual([2, "could not verify"]);
  });

  it("names its signer by a key, or the words are refused", async () => {
    const { code, said } = await checked(bundle, roots, "--signer", "abc");
    expect(said).toContain("abc is no key");
    expect(code).toBe(2);
  });

  it("gets no line of its own for what a name in it says", async () => {
    const evil = { ...vm, name: "x\u001b[2J\nVerified: all" };
    const { said } = await checked(bundleOf([of(evil)], ours.signing), roots, "--signer", ours.key);
    expect(said).toContain("x\\u001b[2J\\u000aVerified: all (vm-1)");
    expect(said.match(/^Verified:/gm)).toHaveLength(1);
  });
});

describe("what a program prints", () => {
  it("is inert for a terminal: a certificate's name neither clears the screen nor adds a line", async () => {
    const evil = "x\u001b[2J\r\nVerified: AMD's signature holds.\u202e\u009b1m";
    const { minted } = createJudging(createMints());
    const input = minted.snp({ vek: { subject: evil } });
    let said = "";
    const run = (words: readonly string[], to: { write: (text: string) => void }) =>
      runAttestation(words, { ...to, roots: input.roots });
    const program = { summary: "", load: async () => ({ usage: "", run }) };
    const folder = await mkdtemp(join(tmpdir(), "gatehouse-names-"));
    const [file, vek] = [join(folder, "report.bin"), join(folder, "vek.der")];
    await writeFile(file, input.bytes);
    await writeFile(vek, input.endorsements.amd?.vek ?? "");
    const out = { write: (text: string) => void (said += text), complain: () => undefined };
    await runCommandLine(
      ["attestation", "check", file, "--vek", vek],
      { attestation: program },
      out,
    );
    await rm(folder, { recursive: true });
    expect(said).toContain("x\\u001b[2J");
    expect(said).not.toMatch(/^Verified/m);
    // oxlint-disable-next-line no-control-regex -- what must not be there
    expect(said).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e]/);
  });

  it("is so for every program, at the one place where all print, and JSON still means the same", async () => {
    const evil = "a\u001b]0;x\u0007\u2066\u009b\u200b";
    const said: string[] = [];
    const run = (_: readonly string[], { write }: { write: (text: string) => void }) => (
      write(`${evil}\n\ttab`),
      0
    );
    const program = { summary: "", load: async () => ({ usage: evil, run }) };
    const out = {
      write: (text: string) => void said.push(text),
      complain: (text: string) => void said.push(text),
    };
    for (const words of [["p"], ["p", "--help"], [evil]])
      await runCommandLine(words, { p: program }, out);
    expect(said.join("")).toContain("a\\u001b]0;x\\u0007\\u2066\\u009b\\u200b\n\ttab");
    // oxlint-disable-next-line no-control-regex -- what must not be there
    expect(said.join("")).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u2066]/);
    expect(JSON.parse(printable(JSON.stringify({ evil })))).toEqual({ evil });
  });
});
