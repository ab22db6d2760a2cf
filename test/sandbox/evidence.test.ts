import { expect, it } from "vitest";
import { vcekNamedBy } from "../../sandbox/evidence/trust.ts";
import { evidenceOf } from "../../sandbox/evidence/vendors.ts";
import { readReport } from "../../src/verifier/snp/report.ts";

it.each(["Milan", "Genoa", "Turin"] as const)(
  "the sandbox reads the VCEK's name in a report of %s where the verifier does",
  (platform) => {
    const machine = { measurement: "ab".repeat(48), hardware: "", boot: "1", isDebug: false };
    const report = evidenceOf({ platform, ...machine });
    const read = readReport(report);
    if ("reason" in read) throw new Error(read.reason);
    const { chipId: chip, reportedTcb: tcb } = read.facts;
    expect(vcekNamedBy(report)).toEqual({ chip, tcb });
    expect(chip).toMatch(/^(c1){8}/);
  },
);
