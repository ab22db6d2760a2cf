import { verifyEvidence } from "../../src/verifier/verify-evidence.ts";
import { endorsementsOf, evidenceOf, vectorOf } from "../verifier/vectors.ts";
import { type Figure, quantile } from "./figure.ts";

const rounds = 400;

/** One verification after the other, warm: every signature, list, and date up to the root. */
export function measureVerifying(): readonly Figure[] {
  const timesOf = (id: string) => {
    const vector = vectorOf(id);
    const [bytes, endorsements] = [evidenceOf(vector), endorsementsOf(vector)];
    const now = Date.parse(vector.at);
    return Array.from({ length: rounds + 50 }, () => {
      const began = performance.now();
      const { is } = verifyEvidence(bytes, endorsements, { now });
      if (is !== "authentic") throw new Error(`${id} is ${is}`);
      return performance.now() - began;
    }).slice(50);
  };
  const figure = (name: string, times: readonly number[]): Figure[] => [
    { name: `verifying ${name}, p50`, value: quantile(times, 0.5), unit: "ms" },
    { name: `verifying ${name}, p95`, value: quantile(times, 0.95), unit: "ms", bound: 5 },
  ];
  return [
    ...figure("a TDX quote", timesOf("tdx-v5-uptodate")),
    ...figure("an SNP report", timesOf("snp-genoa-v5")),
  ];
}
