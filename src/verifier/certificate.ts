import {
  bitsOf,
  type Der,
  integerOf,
  isTrue,
  numberOf,
  octetsOf,
  oidOf,
  partsOf,
  readValue,
  tagged,
  tags,
  timeOf,
} from "./der.ts";
import type { Examination } from "./examination.ts";
import { readPem } from "./pem.ts";
import { isSignedByPss, isSignedInDer } from "./signature.ts";

/** The parts of an X.509 version 3 certificate that are used here. Names are compared as bytes. */
export type Certificate = NonNullable<ReturnType<typeof parseCertificate>>;

const basicConstraints = "2.5.29.19";
const keyUsage = "2.5.29.15";

/** Certificates of the vendors have 2 KiB at most. */
const mostBytes = 16 * 1024;

/**
 * Parses strict DER. Undefined for anything else, and for a certificate with a critical extension
 * that isn't understood here.
 */
export function parseCertificate(der: Buffer) {
  if (der.length > mostBytes) return undefined;
  const [tbs, algorithm, signature, ...more] = partsOf(readValue(der, tags.sequence)) ?? [];
  const [version, serial, inner, issuer, validity, subject, publicKey, extensions, ...rest] =
    partsOf(tbs) ?? [];
  const [notBefore, notAfter, ...others] = (partsOf(validity) ?? []).map((time) => timeOf(time));
  const [number, ...numbers] = partsOf(version, tagged(0)) ?? [];
  const bits = bitsOf(signature);
  const serialBytes = integerOf(serial);
  const commonName = commonNameOf(subject);
  const read = readExtensions(extensions);
  if (more.length + rest.length + others.length + numbers.length > 0 || numberOf(number) !== 2)
    return undefined;
  if (!tbs || !algorithm || !bits || !serialBytes || !issuer || !subject || !publicKey)
    return undefined;
  if (inner?.tag !== tags.sequence || !inner.whole.equals(algorithm.whole)) return undefined;
  if (notBefore === undefined || notAfter === undefined || !read || commonName === undefined)
    return undefined;
  return {
    der,
    tbs: tbs.whole,
    // The AlgorithmIdentifier, which must be the same inside and outside of the signed part.
    algorithm: algorithm.whole,
    signature: bits,
    serial: serialBytes,
    issuer: issuer.whole,
    subject: subject.whole,
    commonName,
    // Milliseconds since the epoch. Both ends are included.
    notBefore,
    notAfter,
    // The SubjectPublicKeyInfo.
    publicKey: publicKey.whole,
    ...read,
  };
}

/** The certificates of a PEM text, in order. Undefined when any of them can't be parsed. */
export function parseCertificates(pem: string): readonly Certificate[] | undefined {
  const all = readPem(pem)?.map((der) => parseCertificate(der));
  const known = all?.filter((certificate) => certificate !== undefined);
  return known?.length === all?.length ? known : undefined;
}

/** The commonName of a name. Undefined unless there is exactly one. */
function commonNameOf(name: Der | undefined): string | undefined {
  const names: string[] = [];
  for (const set of partsOf(name) ?? []) {
    for (const attribute of partsOf(set, tags.set) ?? []) {
      const [type, value, ...more] = partsOf(attribute) ?? [];
      if (!type || !value || more.length > 0) return undefined;
      // The type must be UTF8String or PrintableString.
      if (oidOf(type) === "2.5.4.3" && (value.tag === 0x0c || value.tag === 0x13))
        names.push(value.content.toString("latin1"));
    }
  }
  return names.length === 1 ? names[0] : undefined;
}

/** The content of each extension by its OID, and the parsed form of two of them. */
function readExtensions(field: Der | undefined) {
  const [list, ...more] = partsOf(field, tagged(3)) ?? [];
  const all = partsOf(list);
  if (!all || more.length > 0) return undefined;
  const extensions = new Map<string, Buffer>();
  for (const each of all) {
    const parts = partsOf(each) ?? [];
    const isCritical = parts.length === 3 && isTrue(parts[1]);
    const oid = oidOf(parts[0]);
    const value = octetsOf(parts.at(-1));
    const isForm = parts.length === 2 || isCritical;
    if (!isForm || oid === undefined || value === undefined || extensions.has(oid))
      return undefined;
    if (isCritical && oid !== basicConstraints && oid !== keyUsage) return undefined;
    extensions.set(oid, value);
  }
  const basic = readBasic(extensions.get(basicConstraints));
  const usage = readUsage(extensions.get(keyUsage));
  if (basic === "malformed" || usage === "malformed") return undefined;
  return { extensions, basic, usage };
}

/** Undefined without basicConstraints. `pathLength` is how many further CAs may follow below. */
function readBasic(value: Buffer | undefined) {
  if (value === undefined) return undefined;
  const parts = partsOf(readValue(value, tags.sequence));
  if (!parts || parts.length > 2) return "malformed";
  const isCa = isTrue(parts[0]);
  if (!isCa) return parts.length === 0 ? { isCa, pathLength: 0 } : "malformed";
  const pathLength = parts.length === 1 ? Infinity : numberOf(parts[1]);
  return pathLength === undefined ? "malformed" : { isCa, pathLength };
}

function readUsage(value: Buffer | undefined) {
  if (value === undefined) return undefined;
  const content = readValue(value, tags.bits)?.content;
  const first = content?.[1];
  if (first === undefined) return "malformed";
  return { maySignCertificates: (first & 0x04) !== 0, maySignLists: (first & 0x02) !== 0 };
}

/** How a vendor signs certificates and lists. */
export interface Scheme {
  isAlgorithm(algorithm: Buffer): boolean;
  isSigned: typeof isSignedInDer;
}

const ecdsaWithSha256 = Buffer.from("300a06082a8648ce3d040302", "hex");

/** Intel signs with ecdsa-with-SHA256 on P-256. */
export const intelScheme: Scheme = {
  isAlgorithm: (algorithm) => algorithm.equals(ecdsaWithSha256),
  isSigned: isSignedInDer,
};

/**
 * The AlgorithmIdentifiers of RSASSA-PSS with SHA-384, MGF1 with SHA-384, and salt 48. There are
 * two, because AMD sometimes writes trailer field 1 and sometimes omits it.
 */
const pss = [
  "304106092a864886f70d01010a3034a00f300d06096086480165030402020500a11c301a06092a864886f70d010108300d06096086480165030402020500a203020130",
  "304606092a864886f70d01010a3039a00f300d06096086480165030402020500a11c301a06092a864886f70d010108300d06096086480165030402020500a203020130a303020101",
].map((hex) => Buffer.from(hex, "hex"));

/** AMD signs with PSS and RSA keys of 4,096 bits. */
export const amdScheme: Scheme = {
  isAlgorithm: (algorithm) => pss.some((pssAlgorithm) => pssAlgorithm.equals(algorithm)),
  isSigned: isSignedByPss,
};

/**
 * The problem between a certificate and its issuer, except for dates. Undefined when there is none.
 * `below` is how many CAs stand below the issuer.
 */
export function linkProblem(
  certificate: Certificate,
  issuer: Certificate,
  scheme: Scheme,
  below: number,
) {
  if (!certificate.issuer.equals(issuer.subject)) return "chain-name";
  if (!issuer.basic?.isCa || !issuer.usage?.maySignCertificates) return "chain-not-ca";
  if (issuer.basic.pathLength < below) return "chain-not-ca";
  if (!scheme.isAlgorithm(certificate.algorithm)) return "chain-algorithm";
  return scheme.isSigned(certificate.tbs, issuer.publicKey, certificate.signature)
    ? undefined
    : "chain-signature";
}

/**
 * Checks root, CA, and leaf: each must have the name that its vendor gives it (`areNamed`), be
 * signed by the one above, and be within its validity.
 */
export function examineChain(
  [leaf, ca, root]: readonly [Certificate, Certificate, Certificate],
  scheme: Scheme,
  exam: Examination,
  areNamed: readonly [leaf: boolean, ca: boolean, root: boolean],
): void {
  for (const [certificate, issuer, below, isNamed] of [
    [root, root, 0, areNamed[2]],
    [ca, root, 1, areNamed[1]],
    [leaf, ca, 0, areNamed[0]],
  ] as const) {
    const { commonName, notBefore, notAfter } = certificate;
    if (!isNamed) exam.add("chain-name", commonName);
    const problem = linkProblem(certificate, issuer, scheme, below);
    if (problem) exam.add(problem, commonName);
    exam.lasts("cert", commonName, { from: notBefore, until: notAfter });
  }
}
