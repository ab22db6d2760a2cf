import type { Appraisal } from "../../src/attestation/appraise.ts";
import { at } from "./example.ts";
import { someOf } from "./reading.ts";

const measurement = {
  vm: undefined,
  pinDoubt: undefined,
  evidence: "ab".repeat(48),
  report: "ab".repeat(48),
  matchesVm: true,
};

const service = {
  verified: true,
  platform: "AMD · EPYC 9654 · firmware 1.55.37",
  madeAt: at - 60_000,
  ageMs: 60_000,
};

/** What judging a VM's evidence came to. */
export const verified = someOf<Appraisal>({
  verdict: "verified",
  reasons: ["AMD's signature holds", "the measurement is pinned"],
  notes: ["It reads as evidence of this VM alone"],
  codes: [],
  absent: [],
  evidence: "AMD SEV-SNP report, version 5, Genoa",
  validUntil: at + 20 * 86_400_000,
  measurement: { ...measurement, pins: ["ab".repeat(48)], matchesPin: true },
  service,
  result: someOf<Appraisal["result"]>({
    verification: someOf<Appraisal["result"]["verification"]>({ digest: "cd".repeat(32) }),
    short: [],
  }),
});

export const failed: Appraisal = {
  ...verified,
  verdict: "failed",
  reasons: ["the measurement matches no pin", "debugging is on: the host can read the VM's memory"],
  difference: "abab…abab instead of 0f0e…0d0c",
  isPinnable: true,
  measurement: { ...verified.measurement, pins: ["0f".repeat(48)], matchesPin: false },
};
