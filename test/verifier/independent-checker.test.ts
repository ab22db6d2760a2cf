import { describe, expect, it } from "vitest";
import { readSources, importsOf } from "../structure/sources.ts";
import { verifyEvidence } from "../../src/verifier/verify-evidence.ts";
import { secondLookAtQuote, secondLookAtReport } from "./independent-checker.ts";
import { endorsementsOf, evidenceOf, readVectorFile, vectors } from "./vectors.ts";

const chains = ["chain-signature", "chain-root", "chain-name"];

describe("a second checker that shares no code with the verifier", () => {
  it("imports nothing of it", () => {
    const path = "test/verifier/independent-checker.ts";
    const text = readSources(["test/verifier"]).get(path) ?? "";
    expect(text).toContain("export async function secondLookAtQuote");
    expect(importsOf(path, text)).toEqual([]);
  });

  it.each(vectors.filter(({ tee }) => tee === "snp"))(
    "agrees on the signatures of $id, and of it with a bit turned over",
    async (vector) => {
      const ders = [vector.vek, vector.issuer, vector.root].map((name) =>
        readVectorFile(name ?? ""),
      );
      for (const at of [undefined, 0x91, 0x2a3, 0x2e9]) {
        const bytes = evidenceOf(vector);
        if (at !== undefined) bytes[at] = (bytes[at] ?? 0) ^ 4;
        // oxlint-disable-next-line no-await-in-loop -- four of them
        const second = await secondLookAtReport(bytes, ders);
        const { problems } = verifyEvidence(bytes, endorsementsOf(vector), {
          now: Date.parse(vector.at),
        });
        const reasons = problems.map(({ reason }) => reason);
        expect(second).toEqual({
          chain: !reasons.some((reason) => chains.includes(reason)),
          signatures: !reasons.includes("report-signature"),
        });
      }
    },
  );

  it.each(vectors.filter(({ tee, collateral, parsed }) => tee === "tdx" && collateral && parsed))(
    "agrees on the signatures and the level of $id, and of it with a bit turned over",
    async (vector) => {
      const parts: Record<string, string> = JSON.parse(
        readVectorFile(vector.collateral ?? "").toString("utf8"),
      );
      const collateral = {
        tcbInfo: parts["tcb_info"] ?? "",
        tcbInfoSignature: parts["tcb_info_signature"] ?? "",
        qeIdentity: parts["qe_identity"] ?? "",
        qeIdentitySignature: parts["qe_identity_signature"] ?? "",
        chain: parts["tcb_info_issuer_chain"] ?? "",
      };
      const signature = ["quote-signature", "qe-report-signature", "qe-report-data"];
      for (const at of [undefined, 200, 640, 710, 900]) {
        const bytes = evidenceOf(vector);
        if (at !== undefined) bytes[at] = (bytes[at] ?? 0) ^ 4;
        // oxlint-disable-next-line no-await-in-loop -- five of them
        const second = await secondLookAtQuote(bytes, collateral);
        const { problems, tcb } = verifyEvidence(bytes, endorsementsOf(vector), {
          now: Date.parse(vector.at),
        });
        const reasons: string[] = problems.map(({ reason }) => reason);
        expect(second.chain).toBe(!reasons.some((reason) => chains.includes(reason)));
        expect(second.signatures).toBe(!reasons.some((reason) => signature.includes(reason)));
        if (at === undefined && !reasons.includes("fmspc")) expect(second.status).toBe(tcb?.status);
      }
    },
  );
});
