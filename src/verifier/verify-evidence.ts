import { type Certificate, parseCertificates } from "./certificate.ts";
import { isTdReport, unwrapHclReport } from "./hcl-report.ts";
import { Examination, isClock, Newest } from "./examination.ts";
import { type Problem, problem } from "./reasons.ts";
import { type TrustedRoots, vendorRoots, type Product } from "./roots.ts";
import { bytesInText } from "./saved-bytes.ts";
import { productOf, readReport } from "./snp/report.ts";
import { type AmdEndorsements, verifyReport } from "./snp/verify-report.ts";
import type { IntelEndorsements } from "./tdx/collateral.ts";
import { readQuote } from "./tdx/quote.ts";
import { readPck } from "./tdx/tcb.ts";
import { type PckCa, pckCaOf, verifyQuote } from "./tdx/verify-quote.ts";
import { notReadable, type Verification } from "./verification.ts";

export interface Endorsements {
  intel?: IntelEndorsements;
  amd?: AmdEndorsements;
}

export { Newest };

const mostBytes = 64 * 1024;
/** Intel counts versions of quotes one by one. What begins otherwise is something else. */
const highestVersion = 99;

/**
 * Tells quotes and reports apart: a quote has its key type where a report has the zero bytes of its
 * version.
 */
function teeOf(bytes: Buffer): "tdx" | "snp" | Problem {
  if (isTdReport(bytes)) return problem("evidence-td-report");
  if (bytes.length > mostBytes) return problem("evidence-too-long", `${bytes.length} bytes`);
  if (bytes.length < 4) return problem("evidence-unknown");
  if (bytes.readUInt16LE(2) === 0) return "snp";
  return bytes.readUInt16LE(0) <= highestVersion ? "tdx" : problem("evidence-unknown");
}

interface By {
  /** Our own clock in milliseconds since the epoch; never a time from the report. */
  now: number;
  roots?: TrustedRoots;
  /** The newest lists seen so far from the vendors. Without it, each list is judged by itself. */
  newest?: Newest | undefined;
}

/**
 * Verifies the raw report of a VM, without network access or side effects other than `newest`, and
 * never throws. `given` is undefined when the report couldn't be decoded.
 */
export function verifyEvidence(
  given: Buffer | undefined,
  endorsements: Endorsements,
  { now, roots = vendorRoots, newest }: By,
): Verification {
  if (given === undefined) return notReadable(problem("evidence-encoding"));
  const bytes = unwrapHclReport(given);
  const tee = teeOf(bytes);
  if (typeof tee !== "string") return notReadable(tee);
  if (!isClock(now)) return notReadable(problem("clock"));
  const exam = new Examination(now, newest);
  return tee === "snp"
    ? verifyReport(bytes, endorsements.amd ?? {}, roots, exam)
    : verifyQuote(bytes, endorsements.intel ?? {}, roots, exam);
}

/** Verifies a report as the compute service returns it: a text, or nothing at all. */
export function verifyEncoded(
  report: string | undefined,
  endorsements: Endorsements,
  options: By,
): Verification {
  if (report === undefined || report.trim() === "") return notReadable(problem("evidence-missing"));
  return verifyEvidence(bytesInText(report), endorsements, options);
}

/**
 * The endorsements that some evidence needs. These are only names to look endorsements up by;
 * nothing is proven by them.
 */
export type Needed =
  | {
      tee: "tdx";
      fmspc: string;
      ca: PckCa;
      /** The certificates from the quote, to be checked before anything is fetched. */
      chain: readonly Certificate[];
    }
  | { tee: "snp"; product?: Product; signer: "VCEK" | "VLEK"; chipId: string; reportedTcb: string };

export function endorsementsNeeded(given: Buffer): Needed | undefined {
  const bytes = unwrapHclReport(given);
  const tee = teeOf(bytes);
  if (tee === "snp") {
    const report = readReport(bytes);
    if ("reason" in report) return undefined;
    const { cpuid, signer, chipId, reportedTcb } = report.facts;
    const product = cpuid && productOf(cpuid);
    return { tee, ...(product ? { product } : {}), signer, chipId, reportedTcb };
  }
  if (tee !== "tdx") return undefined;
  const quote = readQuote(bytes);
  const chain = "reason" in quote ? [] : (parseCertificates(quote.pem) ?? []);
  const [leaf, issuer] = chain;
  const pck = leaf && readPck(leaf);
  const ca = issuer && pckCaOf(issuer);
  return pck && !("reason" in pck) && ca ? { tee, fmspc: pck.fmspc, ca, chain } : undefined;
}
