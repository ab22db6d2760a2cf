import {
  type Certificate,
  parseCertificates,
  examineChain,
  intelScheme,
  linkProblem,
} from "../certificate.ts";
import type { Examination } from "../examination.ts";
import { examineList } from "../revocation.ts";
import type { TrustedRoots } from "../roots.ts";
import { isSignedRaw, pointKey, readKey, sha256 } from "../signature.ts";
import { notReadable, type Verification, verificationOf } from "../verification.ts";
import { checkCollateral, type IntelEndorsements, type QeIdentity } from "./collateral.ts";
import { type QuotingEnclaveReport, readQuote, type TdxQuote } from "./quote.ts";
import { type PckFacts, readPck, shortOf, standing, type TcbStanding } from "./tcb.ts";

/**
 * Checks whether a quote comes from a genuine TDX machine, whether anything that vouches for it is
 * revoked, and which TCB level its firmware has.
 */
export function verifyQuote(
  bytes: Buffer,
  endorsements: IntelEndorsements,
  roots: TrustedRoots,
  exam: Examination,
): Verification {
  const quote = readQuote(bytes);
  if ("reason" in quote) return notReadable(quote);
  const chain = readChain(quote.pem, roots, exam);
  checkSignatures(quote, chain?.leaf, exam);
  const tcb = chain && checkPlatform(quote, chain, endorsements, roots, exam);
  // Every path that ends without a level should have recorded a problem. If one ever doesn't, the
  // result must still not be authentic.
  if (!tcb && exam.problems.length === 0) exam.add("collateral-missing", "Intel's word on it");
  return verificationOf(exam, { facts: quote.facts, signed: quote.signed, tcb });
}

type Chain = Record<"leaf" | "ca" | "root", Certificate>;

export type PckCa = "platform" | "processor";
const cas = new Map<string, PckCa>([
  ["Intel SGX PCK Platform CA", "platform"],
  ["Intel SGX PCK Processor CA", "processor"],
]);

/** Which of Intel's two CAs for platforms this is, by its name. */
export const pckCaOf = ({ commonName }: Certificate): PckCa | undefined => cas.get(commonName);

/** Whether the pinned root signed this CA, and the CA may sign certificates. */
function isVouchedFor(ca: Certificate, root: Certificate, roots: TrustedRoots): boolean {
  return root.der.equals(roots.intel) && linkProblem(ca, root, intelScheme, 1) === undefined;
}

/**
 * Whether the PCK certificate is below Intel's root, judged by signatures alone. Nothing is fetched
 * for a quote whose certificate isn't.
 */
export function isOfIntel(chain: readonly Certificate[], roots: TrustedRoots): boolean {
  const [leaf, ca, root] = chain;
  if (!leaf || !ca || !root || !isVouchedFor(ca, root, roots)) return false;
  return linkProblem(leaf, ca, intelScheme, 0) === undefined;
}

/** Reads the PCK certificate, its CA, and the root. Undefined when they can't be parsed at all. */
function readChain(pem: string, roots: TrustedRoots, exam: Examination): Chain | undefined {
  const all = parseCertificates(pem);
  const [leaf, ca, root] = all ?? [];
  if (all === undefined) return exam.add("chain-malformed", "part of the quote's chain");
  if (!leaf || !ca || !root || all.length !== 3)
    return exam.add("chain-length", String(all.length));
  if (!root.der.equals(roots.intel)) exam.add("chain-root", "the PCK certificate");
  examineChain([leaf, ca, root], intelScheme, exam, [
    leaf.commonName === "Intel SGX PCK Certificate",
    pckCaOf(ca) !== undefined,
    root.commonName === "Intel SGX Root CA",
  ]);
  if (leaf.basic?.isCa || leaf.usage?.maySignCertificates)
    exam.add("chain-leaf", "the PCK certificate");
  return { leaf, ca, root };
}

/**
 * The PCK key vouches for the quoting enclave, the enclave for the attestation key, and that key
 * for the quote.
 */
function checkSignatures(
  { signed, signature, point, enclave, enclaveSignature, authData }: TdxQuote,
  leaf: Certificate | undefined,
  exam: Examination,
): void {
  const pckKey = leaf && readKey(leaf.publicKey, "P-256");
  if (!pckKey || !isSignedRaw("sha256", enclave.signed, pckKey, enclaveSignature))
    exam.add("qe-report-signature");
  const vouched = Buffer.concat([sha256(point, authData), Buffer.alloc(32)]);
  if (!enclave.reportData.equals(vouched)) exam.add("qe-report-data");
  const key = pointKey(point);
  if (!key || !isSignedRaw("sha256", signed, key, signature)) exam.add("quote-signature");
}

/**
 * The checks that need more than the quote: revocation, Intel's statement about the platform, and
 * the identity of the quoting enclave.
 */
function checkPlatform(
  { facts, enclave }: TdxQuote,
  { leaf, ca, root }: Chain,
  endorsements: IntelEndorsements,
  roots: TrustedRoots,
  exam: Examination,
): TcbStanding | undefined {
  const { rootCrl, pckCrl } = endorsements;
  const isTrusted = isVouchedFor(ca, root, roots);
  const listed = (listName: string, der: Buffer | undefined, issuer: Certificate) => {
    const of = isTrusted ? `list of ${issuer.publicKey.toString("base64")}` : undefined;
    return examineList(listName, der, { issuer, scheme: intelScheme, of }, exam);
  };
  const revoked = listed("Intel's revocation list of CAs", rootCrl, root);
  const revokedPcks = listed("Intel's revocation list of PCK certificates", pckCrl, ca);
  if (revoked.has(ca.serial.toString("hex"))) exam.add("revoked", ca.commonName);
  if (revokedPcks.has(leaf.serial.toString("hex"))) exam.add("revoked", leaf.commonName);
  const { tcbInfo, qeIdentity } = checkCollateral(endorsements, roots, revoked, exam);
  if ((enclave.attributes[0] ?? 0) & 2) exam.add("qe-debug");
  if (qeIdentity) checkEnclave(enclave, qeIdentity, exam);
  const pck = readPck(leaf);
  if ("reason" in pck) return exam.add(pck.reason, pck.about);
  if (!tcbInfo || !isOfPlatform(pck, tcbInfo, exam) || !qeIdentity) return undefined;
  const levels = { tcbInfo, qeIdentity };
  const tcbStanding = standing(facts, pck, enclave.svn, levels);
  const short = shortOf(facts, pck, enclave.svn, levels);
  if (!("reason" in tcbStanding)) return { ...tcbStanding, short };
  const isOfLevel =
    tcbStanding.reason === "tcb-not-supported" || tcbStanding.reason === "tcb-revoked";
  return exam.add(tcbStanding.reason, tcbStanding.about, isOfLevel ? short : undefined);
}

function isOfPlatform(
  { fmspc, pceId }: PckFacts,
  info: { fmspc: string; pceId: string },
  exam: Examination,
): boolean {
  if (fmspc !== info.fmspc) exam.add("fmspc", `${info.fmspc}, not ${fmspc}`);
  if (pceId !== info.pceId) exam.add("pceid", `${info.pceId}, not ${pceId}`);
  return fmspc === info.fmspc && pceId === info.pceId;
}

function checkEnclave(
  { miscSelect, attributes, mrSigner, productId }: QuotingEnclaveReport,
  identity: QeIdentity,
  exam: Examination,
): void {
  const isMasked = (value: Buffer, mask: Buffer, expected: Buffer) =>
    value.every((byte, at) => (byte & (mask[at] ?? 0)) === (expected[at] ?? 0));
  if (mrSigner !== identity.mrsigner) exam.add("qe-identity", "its signer");
  if (productId !== identity.isvprodid) exam.add("qe-identity", "its product");
  if (!isMasked(miscSelect, identity.miscselectMask, identity.miscselect))
    exam.add("qe-identity", "its MISCSELECT");
  if (!isMasked(attributes, identity.attributesMask, identity.attributes))
    exam.add("qe-identity", "its attributes");
}
