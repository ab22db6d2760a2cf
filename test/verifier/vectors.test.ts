import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { appraiseEvidence, findingsOf } from "../../src/verifier/appraise-evidence.ts";
import { strictPolicy } from "../../src/verifier/appraisal-policy.ts";
import { vendorRoots } from "../../src/verifier/roots.ts";
import type { SnpFacts } from "../../src/verifier/snp/report.ts";
import { endorsementsNeeded, verifyEvidence } from "../../src/verifier/verify-evidence.ts";
import {
  endorsementsOf,
  evidenceOf,
  intelOf,
  readVectorFile,
  rootsOf,
  type Vector,
  vectorOf,
  vectors,
} from "./vectors.ts";

const verifyAt = (vector: Vector, now: number, roots = vendorRoots) =>
  verifyEvidence(evidenceOf(vector), endorsementsOf(vector), { now, roots });

/** The reason that the index gives, in the words of the verifier. */
const reasonOf = ({ expect: { reason } }: Vector) =>
  reason?.startsWith("no collateral") ? "collateral-missing" : reason;

describe("genuine evidence", () => {
  it("is there: 27 vectors, each file as it was published", () => {
    expect(vectors).toHaveLength(27);
    const sums = readVectorFile("SHA256SUMS").toString("utf8").trimEnd().split("\n");
    const wrong = sums.filter((line) => {
      const [sum, name = ""] = line.split("  ");
      return createHash("sha256").update(readVectorFile(name)).digest("hex") !== sum;
    });
    expect(sums.length).toBeGreaterThan(50);
    expect(wrong).toEqual([]);
  });

  it.each(vectors)("$id gets the result that is expected", (vector) => {
    const { is, problems, facts, tcb } = verifyAt(vector, Date.parse(vector.at));
    expect([is, problems]).toEqual([vector.expect.result, expect.anything()]);
    const reason = reasonOf(vector);
    if (reason !== undefined) expect(problems.map((one) => one.reason)).toContain(reason);
    expect(tcb?.status).toBe(vector.expect.tcbStatus);
    if (!facts || vector.expect.findings === undefined) return;
    const vmpl = facts.tee === "snp" && facts.vmpl !== 0 ? [`vmpl ${facts.vmpl}`] : [];
    expect([...vmpl, ...findingsOf(facts)].toSorted()).toEqual(vector.expect.findings.toSorted());
  });

  it.each(vectors.filter(({ verifiesFrom }) => verifiesFrom !== undefined))(
    "$id holds from its first to its last second, and not one longer",
    (vector) => {
      const [from, until] = [vector.verifiesFrom, vector.verifiesUntil].map((at) =>
        Date.parse(at ?? ""),
      ) as [number, number];
      const verified = verifyAt(vector, from);
      expect(verified).toMatchObject({ is: "authentic", validity: { from, until } });
      expect(verifyAt(vector, until).is).toBe("authentic");
      expect(verifyAt(vector, from - 1).is).toBe("unverifiable");
      expect(verifyAt(vector, until + 1).is).toBe("unverifiable");
    },
  );

  it.each(vectors)("$id says what is in it", (vector) => {
    const { facts } = verifyAt(vector, Date.parse(vector.at));
    const { parsed } = vector;
    // Not a quote of a VM: nothing is read of it
    if (!facts || !parsed) return expect(vector.id).toBe("sgx-not-tdx");
    const shown = facts.tee === "snp" ? shownSnp(facts) : { ...facts };
    const same = Object.keys(parsed).filter((key) => key in shown);
    expect(same.length).toBeGreaterThan(9);
    expect(Object.fromEntries(same.map((key) => [key, shown[key as keyof typeof shown]]))).toEqual(
      Object.fromEntries(same.map((key) => [key, parsed[key]])),
    );
  });

  it.each(vectors.filter(({ tee }) => tee === "tdx"))(
    "$id names the endorsements it needs",
    (vector) => {
      const needed = endorsementsNeeded(evidenceOf(vector));
      const fmspc = vector.parsed?.["fmspc"];
      expect(needed && { ...needed, chain: undefined }).toEqual(
        vector.id === "sgx-not-tdx" ? undefined : { tee: "tdx", fmspc, ca: expect.anything() },
      );
    },
  );

  it("is judged by the published roots: the source holds the same", () => {
    for (const vector of vectors)
      expect(verifyAt(vector, Date.parse(vector.at), rootsOf(vendorRoots, vector)).is).toBe(
        vector.expect.result,
      );
  });

  it("verifies with Intel's answers as they come", () => {
    const vector = vectorOf("tdx-v5-uptodate-refreshed");
    const text = (name: string) => readVectorFile(`intel/responses/${name}`).toString("utf8");
    const chain = text("tcb-signing-chain.pem");
    const intel = {
      tcbInfo: { body: text("tcb-90c06f000000.json"), chain },
      qeIdentity: { body: text("qe-identity.json"), chain },
      pckCrl: readVectorFile("intel/responses/pckcrl-platform.der"),
      rootCrl: readVectorFile("intel/responses/root-ca-crl.der"),
    };
    const now = Date.parse(vector.at);
    expect(verifyEvidence(evidenceOf(vector), { intel }, { now }).is).toBe("authentic");
    expect(intelOf(vector.collateral ?? "").rootCrl).toEqual(intel.rootCrl);
  });

  it("fails from a debug guest, and another with its measurement pinned is verified", () => {
    const [debug, good] = ["snp-milan-v2-debug", "snp-genoa-v5"].map((id) => {
      const vector = vectorOf(id);
      const now = Date.parse(vector.at);
      const measurement = String(vector.parsed?.["measurement"]);
      return appraiseEvidence(verifyAt(vector, now), {
        policy: { ...strictPolicy, allows: ["known-broken-product"] },
        references: [measurement],
        now,
      });
    });
    expect(debug?.verdict).toBe("failed");
    expect(debug?.reasons).toEqual([
      { code: "debug", says: "debugging is on: the host can read the VM's memory" },
    ]);
    expect(good).toMatchObject({
      verdict: "verified",
      claims: { hardware: 2, executables: 3, configuration: 2, instanceIdentity: 0 },
    });
  });
});

function shownSnp(facts: SnpFacts) {
  return {
    ...facts,
    policy: `0x${facts.policy.toString(16)}`,
    platformInfo: `0x${facts.platformInfo.toString(16)}`,
    signingKey: facts.signer,
  };
}
