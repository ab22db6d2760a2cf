import type { Allowance } from "./appraisal-policy.ts";
import { isMasked } from "./snp/verify-report.ts";
import type { Facts } from "./verification.ts";

/** What genuine evidence may say of a VM that its users would not want. */
export type Finding =
  | Exclude<Allowance, "known-broken-product">
  | "unbound"
  | "sept-ve-disable-off";

const bit = (bits: bigint, at: number) => (bits & (1n << BigInt(at))) !== 0n;

export function findingsOf(facts: Facts): readonly Finding[] {
  const found: [Finding, boolean][] =
    facts.tee === "snp"
      ? [
          ["debug", bit(facts.policy, 19)],
          ["migration-agent", bit(facts.policy, 18)],
          ["chip-masked", isMasked(facts)],
        ]
      : tdxFindings(Buffer.from(facts.tdAttributes, "hex").readBigUInt64LE(), facts.mrServiceTd);
  found.push(["unbound", /^0*$/.test(facts.reportData)]);
  return found.flatMap(([finding, isSo]) => (isSo ? [finding] : []));
}

/** Bits 0 to 7 make a TD one that its host can look into: 0 is debugging, 4 to 6 are profiling, the rest is reserved. */
function tdxFindings(attributes: bigint, mrServiceTd: string | undefined): [Finding, boolean][] {
  return [
    ["debug", (attributes & 0xffn) !== 0n],
    ["migratable", bit(attributes, 29)],
    ["service-td", mrServiceTd !== undefined && !/^0*$/.test(mrServiceTd)],
    ["sept-ve-disable-off", !bit(attributes, 28)],
  ];
}
