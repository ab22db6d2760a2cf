import { amdScheme, type Certificate, examineChain, parseCertificate } from "../certificate.ts";
import { numberOf, readValue, tags } from "../der.ts";
import { formOf } from "../endorsement-form.ts";
import type { Examination } from "../examination.ts";
import { examineList } from "../revocation.ts";
import { type Product, products, type TrustedRoots } from "../roots.ts";
import { type Problem, problem } from "../reasons.ts";
import { isSignedRaw, readKey } from "../signature.ts";
import { notReadable, type Verification, verificationOf } from "../verification.ts";
import {
  productOf,
  readReport,
  type SnpFacts,
  type SnpReport,
  tcbPartNames,
  type TcbParts,
  tcbParts,
} from "./report.ts";

/** The data that AMD signs besides its roots, as AMD delivers it. */
export interface AmdEndorsements {
  /** The VCEK or VLEK, DER. Without it, the certificate in the table behind the report is used. */
  vek?: Buffer | undefined;
  /** The product's list of revoked certificates, DER. */
  crl?: Buffer | undefined;
}

/**
 * Checks whether a report comes from a genuine processor (SEV-SNP), and whether anything that
 * vouches for it is revoked. AMD signs no statement about firmware versions, so the appraisal
 * policy decides whether they are new enough.
 */
export function verifyReport(
  bytes: Buffer,
  endorsements: AmdEndorsements,
  roots: TrustedRoots,
  exam: Examination,
): Verification {
  const report = readReport(bytes);
  if ("reason" in report) return notReadable(report);
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
  const needed = `${facts.signer} of the firmware ${facts.reportedTcb}`;
  if (!der) return exam.add("vek-missing", needed) ?? reported;
  const form = given && formOf(given);
  if (form !== undefined)
    return exam.add("vek-missing", `${needed}; its file is ${form}`) ?? reported;
  const certificate = parseCertificate(der);
  if (!certificate) return exam.add("chain-malformed", `the ${facts.signer}`) ?? reported;
  const issuers = issuersOf(certificate, roots);
  if (!issuers) return exam.add("chain-root", `the ${facts.signer}`) ?? reported;
  checkChain(certificate, issuers, exam);
  checkLists(issuers, crl, exam);
  const vek = readVek(certificate);
  if ("reason" in vek) exam.add(vek.reason, vek.about);
  else checkBinding(facts, vek, issuers.product, reported, exam);
  const key = readKey(certificate.publicKey, "P-384");
  if (!key) exam.add("chain-leaf", `the ${facts.signer}`);
  else if (!isSignedRaw("sha384", signed, key, signature)) exam.add("report-signature");
  return issuers.product;
}

function checkChain(
  leaf: Certificate,
  { product, kind, issuer, ark }: VekIssuers,
  exam: Examination,
): void {
  const name = `SEV-${kind}`;
  const issuerName = kind === "VLEK" ? `SEV-VLEK-${product}` : `SEV-${product}`;
  examineChain([leaf, issuer, ark], amdScheme, exam, [
    leaf.commonName === name,
    issuer.commonName === issuerName,
    ark.commonName === `ARK-${product}`,
  ]);
  // AMD's leaf certificates have neither extension. A certificate that may sign others isn't a
  // leaf.
  if (leaf.basic || leaf.usage) exam.add("chain-leaf", name);
}

/** Every VCEK has the serial number 0, so AMD's lists can only name the certificates above it. */
function checkLists(
  { product, kind, issuer, ark }: VekIssuers,
  crl: Buffer | undefined,
  exam: Examination,
): void {
  // Both lists of a product are signed by its ARK, which may number each list separately.
  const of = `list of ${product}, ${kind}`;
  const authority = { issuer: ark, scheme: amdScheme, of };
  const revoked = examineList(`AMD's revocation list for ${product}`, crl, authority, exam);
  for (const { serial, commonName } of [issuer, ark])
    if (revoked.has(serial.toString("hex"))) exam.add("revoked", commonName);
}

/**
 * Checks that the certificate is for this chip, with this firmware, and of the kind that the report
 * names.
 */
function checkBinding(
  facts: SnpFacts,
  vek: Vek,
  product: Product,
  reported: Product | undefined,
  exam: Examination,
): void {
  if (facts.signer !== vek.kind) exam.add("signer-kind", `${facts.signer}, not ${vek.kind}`);
  const vekProduct = vek.productName === "Siena" ? "Genoa" : vek.productName;
  if (vekProduct !== product || (reported !== undefined && reported !== product))
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

/** The certificate of the key that signs reports: the chip's own (VCEK), or a cloud's (VLEK). */
type Vek = Exclude<ReturnType<typeof readVek>, Problem>;

const base = "1.3.6.1.4.1.3704.1";
/** The tag of an IA5String. */
const ia5 = 0x16;
const partOids = { bootloader: 1, tee: 2, snp: 3, microcode: 8, fmc: 9 } as const;

/** Reads AMD's certificate extensions (57230), or names the one that is missing. */
export function readVek(certificate: Certificate) {
  const at = (oid: string) => certificate.extensions.get(`${base}.${oid}`);
  const name = readValue(at("2"), ia5)?.content.toString("latin1");
  if (name === undefined) return problem("vek-extension", "product");
  // `Milan-B0` becomes `Milan`.
  const [productName = ""] = name.split("-");
  const structVersion = numberOf(readValue(at("1"), tags.integer));
  if (structVersion !== (productName === "Turin" ? 1 : 0))
    return problem("vek-extension", "structure");
  const tcb: TcbParts = {};
  for (const part of tcbPartNames) {
    if (part === "fmc" && productName !== "Turin") continue;
    const number = numberOf(readValue(at(`3.${partOids[part]}`), tags.integer));
    if (number === undefined) return problem("vek-extension", `${part} version`);
    tcb[part] = number;
  }
  const kind: SnpFacts["signer"] = certificate.commonName === "SEV-VLEK" ? "VLEK" : "VCEK";
  // This extension names the cloud that the VLEK is leased to.
  if (kind === "VLEK" && !readValue(at("5"), ia5)) return problem("vek-extension", "cloud");
  if (kind === "VLEK") return { kind, productName, tcb, hwid: undefined };
  // The value is the bytes themselves, not wrapped in another OCTET STRING.
  const hwid = at("4");
  if (hwid?.length !== (productName === "Turin" ? 8 : 64))
    return problem("vek-extension", "chip ID");
  return { kind, productName, tcb, hwid: hwid.toString("hex") };
}

type VekIssuers = NonNullable<ReturnType<typeof issuersOf>>;

/** The pinned ASK or ASVK whose name is the certificate's issuer, and the ARK above it. */
export function issuersOf(certificate: Certificate, roots: TrustedRoots) {
  for (const product of products) {
    const { ark, ask, asvk } = roots.amd[product];
    for (const [kind, der] of [
      ["VCEK", ask],
      ["VLEK", asvk],
    ] as const) {
      const issuer = parseCertificate(der);
      if (!issuer?.subject.equals(certificate.issuer)) continue;
      const root = parseCertificate(ark);
      return root && { product, kind, issuer, ark: root };
    }
  }
  return undefined;
}

const vekGuids = ["63da758de6644564adc5f4b93be8accd", "a8074bc2a25a483eaae639c045a0b8a1"];
const entryBytes = 24;
const mostEntries = 16;

/**
 * Finds the VCEK or VLEK in the table that may follow a report (GHCB specification, 56421: GUID,
 * offset, length; a GUID of zeros ends it). It is only a hint: what is found is checked like any
 * other certificate.
 */
function vekInTable(rest: Buffer): Buffer | undefined {
  for (let n = 0; n < mostEntries; n += 1) {
    const entry = rest.subarray(n * entryBytes, (n + 1) * entryBytes);
    if (entry.length < entryBytes) return undefined;
    const guid = entry.toString("hex", 0, 16);
    if (/^0+$/.test(guid)) return undefined;
    const [offset, length] = [entry.readUInt32LE(16), entry.readUInt32LE(20)];
    if (vekGuids.includes(guid) && length > 0 && offset + length <= rest.length)
      return rest.subarray(offset, offset + length);
  }
  return undefined;
}
