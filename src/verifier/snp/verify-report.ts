import { amdScheme, type Certificate, linkProblem, parseCertificate } from "../certificate.ts";
import { Examination, type Newest } from "../examination.ts";
import { examineList } from "../revocation.ts";
import type { Product, TrustedRoots } from "../roots.ts";
import { isSignedRaw, readKey } from "../signature.ts";
import { notReadable, type Verification, verificationOf } from "../verification.ts";
import { productOf, readReport, type SnpFacts, type SnpReport, tcbParts } from "./report.ts";
import { issuersOf, readVek, type Vek, vekInTable, type VekIssuers } from "./vek.ts";

/** What AMD has signed beside its roots, as it came from AMD. */
export interface AmdEndorsements {
  /** The VCEK or VLEK, DER; without it, the one in the table behind the report. */
  vek?: Buffer | undefined;
  /** The product's list of revoked certificates, DER. */
  crl?: Buffer | undefined;
}

/**
 * Whether a report is a genuine processor's (SEV-SNP), and that no one has revoked what vouches for it. AMD signs no
 * status of firmware: whether it is new enough is for the appraisal policy.
 */
export function verifyReport(
  bytes: Buffer,
  endorsements: AmdEndorsements,
  { now, roots, newest }: { now: number; roots: TrustedRoots; newest?: Newest | undefined },
): Verification {
  const report = readReport(bytes);
  if ("reason" in report) return notReadable(report);
  const exam = new Examination(now, newest);
  for (const { reason, about } of report.problems) exam.add(reason, about);
  const product = checkKey(report, endorsements, roots, exam);
  return verificationOf(exam, { facts: report.facts, signed: report.signed, product });
}

function checkKey(
  { facts, signed, signature, rest }: SnpReport,
  { vek: given, crl }: AmdEndorsements,
  roots: TrustedRoots,
  exam: Examination,
): Product | undefined {
  const reported = facts.cpuid && productOf(facts.cpuid);
  if (facts.cpuid && !reported)
    exam.add("product-unknown", `family ${facts.cpuid.family}, model ${facts.cpuid.model}`);
  const der = given ?? vekInTable(rest);
  if (!der) {
    exam.add("vek-missing", `${facts.signer} of the firmware ${facts.reportedTcb}`);
    return reported;
  }
  const certificate = parseCertificate(der);
  if (!certificate) {
    exam.add("chain-malformed", `the ${facts.signer}`);
    return reported;
  }
  const issuers = issuersOf(certificate, roots);
  if (!issuers) {
    exam.add("chain-root", `the ${facts.signer}`);
    return reported;
  }
  checkChain(certificate, issuers, exam);
  checkLists(issuers, crl, exam);
  const vek = readVek(certificate);
  if ("lacks" in vek) exam.add("vek-extension", vek.lacks);
  else checkBinding(facts, vek, issuers.product, reported, exam);
  const key = readKey(certificate.publicKey, "P-384");
  if (!key) exam.add("chain-leaf", `the ${facts.signer}`);
  else if (!isSignedRaw("sha384", signed, key, signature)) exam.add("report-signature");
  return issuers.product;
}

/** Whom a product's certificates may name. */
const names = (product: Product, kind: Vek["kind"]) => ({
  ark: `ARK-${product}`,
  issuer: kind === "VLEK" ? `SEV-VLEK-${product}` : `SEV-${product}`,
  leaf: `SEV-${kind}`,
});

function checkChain(
  leaf: Certificate,
  { product, kind, issuer, ark }: VekIssuers,
  exam: Examination,
): void {
  const expected = names(product, kind);
  for (const [certificate, name] of [
    [ark, expected.ark],
    [issuer, expected.issuer],
    [leaf, expected.leaf],
  ] as const) {
    if (certificate.commonName !== name) exam.add("chain-name", certificate.commonName);
    exam.lasts("cert", name, { from: certificate.notBefore, until: certificate.notAfter });
  }
  for (const [certificate, above, below] of [
    [ark, ark, 0],
    [issuer, ark, 1],
    [leaf, issuer, 0],
  ] as const) {
    const problem = linkProblem(certificate, above, amdScheme, below);
    if (problem) exam.add(problem, certificate.commonName);
  }
  // AMD's leaves have neither: one that may sign certificates is none of them
  if (leaf.basic || leaf.usage) exam.add("chain-leaf", expected.leaf);
}

/** Every VCEK has the serial number 0, so that lists can only name what stands above. */
function checkLists(
  { product, kind, issuer, ark }: VekIssuers,
  crl: Buffer | undefined,
  exam: Examination,
): void {
  // One ARK may number its two lists apart
  const of = `list of ${product}, ${kind}`;
  const by = { issuer: ark, scheme: amdScheme, of };
  const revoked = examineList(`AMD's revocation list of ${product}`, crl, by, exam);
  for (const { serial, commonName } of [issuer, ark])
    if (revoked.has(serial.toString("hex"))) exam.add("revoked", commonName);
}

/** That the certificate is of this chip, with this firmware, and of the kind that the report names. */
function checkBinding(
  facts: SnpFacts,
  vek: Vek,
  product: Product,
  reported: Product | undefined,
  exam: Examination,
): void {
  if (facts.signer !== vek.kind) exam.add("signer-kind", `${facts.signer}, not ${vek.kind}`);
  const its = vek.productName === "Siena" ? "Genoa" : vek.productName;
  if (its !== product || (reported !== undefined && reported !== product))
    exam.add("product", [reported, vek.productName, product].filter(Boolean).join(", "));
  for (const [part, value] of Object.entries(tcbParts(facts.reportedTcb, product))) {
    const certified = vek.tcb[part as keyof typeof vek.tcb];
    if (certified !== value)
      exam.add("vcek-tcb", `${part} ${certified} certified, ${value} reported`);
  }
  if (vek.hwid !== undefined && !isMasked(facts) && facts.chipId !== vek.hwid.padEnd(128, "0"))
    exam.add("vcek-hwid");
}

export const isMasked = ({ chipId }: SnpFacts): boolean => /^0*$/.test(chipId);
