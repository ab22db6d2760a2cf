import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { evidenceOf, sandboxRoots, writeEndorsements } from "../../sandbox/evidence/vendors.ts";
import { findEndorsements } from "../../src/attestation/endorsement-folder.ts";
import { createRefresher } from "../../src/attestation/refresher.ts";
import { createLog } from "../../src/log/log.ts";
import { endorsementsNeeded, verifyEvidence } from "../../src/verifier/verify-evidence.ts";
import { startVendors } from "../support/vendor-server.ts";

export const machine = {
  measurement: "ab".repeat(48),
  hardware: "",
  boot: "first",
  isDebug: false,
};
export const snp = evidenceOf({ ...machine, platform: "Genoa" });
export const turin = evidenceOf({ ...machine, platform: "Turin" });
export const tdx = evidenceOf({ ...machine, platform: "TDX" });

export const needs = (evidence: Buffer) => {
  const needed = endorsementsNeeded(evidence);
  if (!needed) throw new Error("needs nothing");
  return needed;
};

/** The vendors on this machine, and a refresher with an empty folder. */
export async function vendors({ onServed = () => undefined as unknown } = {}) {
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
