import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { launchMeasurement } from "../../../sandbox/compute/records.ts";
import { ledgerImage, seedLedger } from "../../../sandbox/compute/seed.ts";
import { sandboxRoots } from "../../../sandbox/evidence/vendors.ts";
import { runAttestation } from "../../../src/cli/attestation.ts";
import { vendorRoots } from "../../../src/verifier/roots.ts";
import { hears, wordsOf } from "../../stories/words.ts";
import { startWorld, testPolicy } from "../../support/start-world.ts";

const web2 = launchMeasurement("web-2 v1", 4);
const policy = `${testPolicy}attestation:
  endorsements: endorsements
  pins:
    - { targets: ["ledger-*"], measurements: ["${launchMeasurement(ledgerImage, 2)}"] }
    - { targets: ["payments/web-2"], measurements: ["${web2}"] }
`;
const world = await startWorld({
  policy,
  ranOut: ["Turin"],
  prepare: ({ edit }) => seedLedger(edit),
});
afterAll(() => world.close());

async function says(text: string, words: RegExp) {
  await world.vera.types("ops", text);
  return wordsOf(await hears(world.vera, "ops", words));
}

const signerOf = (bundle: string) => (JSON.parse(bundle) as { signedBy: string }).signedBy;

describe("/vm attest", () => {
  it("verifies by the vendor's roots: what was checked, by whom, until when; the service's word beside it", async () => {
    const said = await says("/vm attest ledger-1", /Verified: ledger-1/);
    expect(said).toContain("AMD's signature holds");
    expect(said).toContain("The measurement is pinned");
    expect(said).toMatch(/Checked by Gatehouse\nAMD SEV-SNP report, version 5, Genoa/);
    expect(said).toMatch(/Holds until\n/);
    expect(said).toMatch(/The compute service says\nverified · AMD/);
    expect(said).toContain("own verdict (verified) isn't used");
  });

  it("fails a VM with another image or with debugging on, although the service says verified", async () => {
    const changed = await says("/vm attest ledger-2", /Failed: ledger-2/);
    expect(changed).toMatch(/The measurement matches no pin.*Difference.*instead of/s);
    expect(changed).toMatch(/The compute service says\nverified/);
    const debugged = await says("/vm attest ledger-3", /Failed: ledger-3/);
    expect(debugged).toContain("Debugging is on: the host can read the VM's memory.");
    expect(debugged).toMatch(/Checked by Gatehouse\nIntel TDX quote, version 4/);
  });

  it("says what it couldn't judge, why, and what to do", async () => {
    const ranOut = await says("/vm attest ledger-4", /Could not verify: ledger-4/);
    expect(ranOut).toContain("AMD's revocation list of Turin has expired");
    expect(ranOut).toContain("Renew the vendor's lists");
    const unpinned = await says("/vm attest vault-1", /Could not verify: vault-1/);
    expect(unpinned).toContain("No measurement is pinned for this VM");
    expect(unpinned).toContain(launchMeasurement("vault-1 v1", 2));
    await says("/vm attest worker-1", /Could not verify: worker-1/);
  });

  it("shows a fleet in a table, the worst first, with a file of whole values", async () => {
    const said = await says("/vm attest ledger-*,web-2", /Attestation of ledger/);
    expect(said).toMatch(/🔴 2 failed, ❔ 1 could not verify, ✅ 2 verified/);
    const names = [...said.matchAll(/^(ledger-\d|web-2) \|/gm)].map(([, name]) => name);
    expect(names).toEqual(["ledger-2", "ledger-3", "ledger-4", "ledger-1", "web-2"]);
    expect(said).toMatch(/ledger-1 \| ✅ verified \| .* \| (29|30) \| /);
    const [file] = await world.slack.until(() => {
      const files = [...world.slack.workspace.files.values()];
      return files.some(({ name }) => name === "attestation.csv") ? files : undefined;
    });
    expect(file?.bytes?.toString()).toContain(web2);
    await says("/vm attest nothing-*", /matches none of the \d+ VMs you can see/);
  });

  it("gives the raw report as a file to the person who presses its button", async () => {
    await says("/vm attest web-2", /Verified: web-2/);
    await world.vera.presses("Raw report");
    await hears(world.vera, "ops", /is a file in your direct messages/);
    const [file] = await world.slack.until(() => {
      const files = [...world.slack.workspace.files.values()].filter(({ name }) =>
        name.startsWith("attestation-web-2-"),
      );
      return files.length > 0 ? files : undefined;
    });
    expect(JSON.parse(file?.bytes?.toString() ?? "")).toMatchObject({
      appraisal: { verdict: "verified", result: { claims: { hardware: 2, executables: 3 } } },
    });
  });

  it("gives all evidence in a signed file, which a terminal judges again without anything else", async () => {
    await says("/vm attest ledger-1 --evidence", /The evidence is a file/);
    const file = await world.slack.until(() =>
      [...world.slack.workspace.files.values()].find(({ name }) => name.startsWith("evidence-")),
    );
    const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-bundle-"));
    const check = async (content: string, roots = sandboxRoots) => {
      const bundle = path.join(folder, "bundle.json");
      await writeFile(bundle, content);
      let said = "";
      const write = (text: string) => void (said += text);
      const signer = signerOf(String(file.bytes));
      const words = ["check", bundle, "--signer", signer];
      return { code: await runAttestation(words, { write, roots }), said };
    };
    const content = String(file.bytes);
    const well = await check(content);
    expect(well.said).toMatch(/^Verified: AMD's signature holds; the measurement is pinned\.\n/);
    expect(well.said).toMatch(/as signed by the key [0-9a-f]{16}, which /);
    expect(well.code).toBe(0);
    // Pins that were added later fail the check, and a reader may trust only the vendors.
    const changed = await check(content.replace('"vmpl": 0', '"vmpl": 1'));
    expect(changed.said).toMatch(/^Failed: the bundle was changed after it was signed\./);
    expect(changed.code).toBe(1);
    expect((await check(content, vendorRoots)).code).toBe(1);
    await rm(folder, { recursive: true });
  });

  it("gives the evidence of a fleet in one signed file, which a terminal judges again, the worst first", async () => {
    await says("/vm attest ledger-*,worker-1", /Attestation of ledger[^]*worker-1/);
    await world.vera.presses("Evidence");
    await hears(world.vera, "ops", /The evidence is a file/);
    const content = await world.slack.until(() =>
      [...world.slack.workspace.files.values()]
        .map(({ bytes }) => String(bytes))
        .find((text) => /"without": \[\s*\{/.test(text)),
    );
    const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-fleet-"));
    const check = async (text: string) => {
      const file = path.join(folder, "fleet.json");
      await writeFile(file, text);
      let said = "";
      const write = (line: string) => void (said += line);
      const words = ["check", file, "--signer", signerOf(content)];
      const code = await runAttestation(words, { write, roots: sandboxRoots });
      return { code, said };
    };
    const well = await check(content);
    expect(well.said).toMatch(
      /^5 VMs: 2 failed, 2 could not verify, 1 verified\n {2}failed: ledger-/,
    );
    expect(well.said).toMatch(
      /could not verify: worker-1 \([\w-]+\): no report: the compute service gave/,
    );
    expect(well.said).toMatch(/as signed by the key [0-9a-f]{16}, which /);
    expect(well.code).toBe(1);
    // Two VMs of one kind share one copy of their vendor's lists.
    const { endorsements, vms } = JSON.parse(content) as Record<string, object[]>;
    expect([endorsements?.length, vms?.length]).toEqual([3, 4]);
    const changed = await check(content.replace('"verdict": "failed"', '"verdict": "verified"'));
    expect(changed.said).toMatch(/^Failed: the bundle was changed after it was signed\./);
    await rm(folder, { recursive: true });
  });

  it("finds one report under two VMs, and an old one after a restart, with the service's yes to both", async () => {
    world.compute.edit.giveReportOf({ vm: "ledger-4", of: "ledger-1" });
    const other = await says("/vm attest ledger-4", /Failed: ledger-4/);
    expect(other).toContain("The report is another VM's");
    world.compute.edit.giveReportOf({ vm: "payments/web-2", of: "payments/web-2" });
    await world.olivia.types("ops", "/vm restart web-2");
    await hears(world.olivia, "ops", /<@U0OLIVIA> .*still the one from before the change/s);
  });
});

describe("a console", () => {
  it("is refused where the VM isn't verified, and opens where it is", async () => {
    await world.olivia.types("ops", "/vm console ledger-3");
    await hears(world.olivia, "ops", /No console on ledger-3: its attestation failed \(debugging/);
    await world.olivia.types("ops", "/vm console ledger-1");
    await hears(world.olivia, "ops", /shown only to you/);
    // Without the vendor's lists nothing proves that the VM is good or bad.
    await rm(path.join(world.endorsements, "amd/Genoa/vcek.crl"));
    await world.olivia.types("ops", "/vm console ledger-1");
    await hears(world.olivia, "ops", /No console on ledger-1: it could not be verified/);
    await says(
      "/vm attest ledger-1",
      /Missing in the folder of endorsements: amd\/Genoa\/vcek.crl/,
    );
  });
});
