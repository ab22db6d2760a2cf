import {
  amdScheme,
  type Certificate,
  parseCertificates,
  intelScheme,
  linkProblem,
  parseCertificate,
  type Scheme,
} from "./certificate.ts";
import { formOf } from "./endorsement-form.ts";
import { type Edition, Examination } from "./examination.ts";
import { type Reason, sentenceOf } from "./reasons.ts";
import { aboutList, readRevocationList } from "./revocation.ts";
import { type Product, products, type TrustedRoots } from "./roots.ts";
import { type TcbParts, tcbParts } from "./snp/report.ts";
import { issuersOf, readVek } from "./snp/verify-report.ts";
import { aboutChain, checkCollateral } from "./tdx/collateral.ts";
import { type PckCa, pckCaOf } from "./tdx/verify-quote.ts";

/** The kinds of files in a folder of endorsements, each with what it is about. */
export type EndorsementKind =
  | { document: "intel-root-list" }
  | { document: "intel-pck-list"; ca: PckCa }
  | { document: "intel-qe-identity" }
  | {
      document: "intel-tcb-info";
      fmspc: string;
      /** Present for the TCB info that Intel will require next: `update=early`. */
      early?: string | undefined;
    }
  | { document: "amd-list"; product: Product; signer: "vcek" | "vlek" }
  | { document: "amd-vcek"; product: Product; hwid: string; tcb: string };

/** One endorsement, with the chain of its signer unless a root signed it. */
export interface EndorsementFiles {
  content: Buffer;
  /** PEM. */
  chain?: string | undefined;
}

/**
 * The edition and the end of validity (ms) of an endorsement whose signatures hold, or why it can't
 * be used.
 */
export type Inspected = (Edition & { until: number }) | { problem: string };

/** The roots that are trusted, and our clock (ms). */
export interface By {
  roots: TrustedRoots;
  now: number;
}

/** Checks one endorsement by itself, up to the roots. The caller must judge its dates. */
export function inspectEndorsement(
  kind: EndorsementKind,
  files: EndorsementFiles,
  { roots, now }: By,
): Inspected {
  if (kind.document === "intel-root-list")
    return inspectList(files.content, parseCertificate(roots.intel), intelScheme);
  if (kind.document === "intel-pck-list") return inspectPckList(kind.ca, files, roots);
  if (kind.document === "amd-list")
    return inspectList(files.content, parseCertificate(roots.amd[kind.product].ark), amdScheme);
  if (kind.document === "amd-vcek") return inspectVcek(kind, files.content, roots);
  return inspectCollateral(kind, files, roots, now);
}

function inspectList(list: Buffer, issuer: Certificate | undefined, scheme: Scheme): Inspected {
  if (!issuer) return { problem: "its issuer can't be read" };
  const read = readRevocationList(list, issuer, scheme);
  if (typeof read === "string") return problemOf(read, aboutList("the revocation list", list));
  return { number: read.number, from: read.thisUpdate, until: read.nextUpdate };
}

/**
 * Each quote contains the CA. Here the list is checked without a quote, so the CA comes from the
 * chain file.
 */
function inspectPckList(
  ca: PckCa,
  { content, chain }: EndorsementFiles,
  { intel }: TrustedRoots,
): Inspected {
  if (chain === undefined)
    return { problem: `its chain is missing: the answer's header SGX-PCK-CRL-Issuer-Chain` };
  const all = parseCertificates(chain);
  if (!all) return problemOf("collateral-malformed", aboutChain("its chain", chain));
  const [issuer, root] = all;
  if (!issuer || !root?.der.equals(intel))
    return { problem: "its chain ends at no root that is trusted" };
  const problem = linkProblem(issuer, root, intelScheme, 0);
  if (problem) return problemOf(problem, issuer.commonName);
  if (pckCaOf(issuer) !== ca) return problemOf("chain-name", issuer.commonName);
  return inspectList(content, issuer, intelScheme);
}

function inspectCollateral(
  kind: EndorsementKind & { document: "intel-qe-identity" | "intel-tcb-info" },
  { content, chain = "" }: EndorsementFiles,
  roots: TrustedRoots,
  now: number,
): Inspected {
  const answer = { body: content.toString("utf8"), chain };
  const isInfo = kind.document === "intel-tcb-info";
  const exam = new Examination(now);
  const read = checkCollateral(
    isInfo ? { tcbInfo: answer } : { qeIdentity: answer },
    roots,
    new Set(),
    exam,
  );
  const problem = exam.problems.find(
    ({ reason }) => reason !== "collateral-missing" && !/-(expired|not-yet-valid)$/.test(reason),
  );
  if (problem) return { problem: sentenceOf(problem) };
  if (isInfo && read.tcbInfo && read.tcbInfo.fmspc !== kind.fmspc)
    return problemOf("fmspc", read.tcbInfo.fmspc);
  const { from, until } = exam.span;
  const evaluation = (read.tcbInfo ?? read.qeIdentity)?.evaluation;
  return { ...(evaluation === undefined ? {} : { number: BigInt(evaluation) }), from, until };
}

function inspectVcek(
  { product, hwid, tcb }: EndorsementKind & { document: "amd-vcek" },
  der: Buffer,
  roots: TrustedRoots,
): Inspected {
  const certificate = parseCertificate(der);
  const form = formOf(der);
  if (form !== undefined) return problemOf("vek-missing", `its file is ${form}`);
  const issuers = certificate && issuersOf(certificate, roots);
  if (!certificate || issuers?.product !== product || issuers.kind !== "VCEK")
    return { problem: `it is no VCEK of ${product}'s` };
  const problem = linkProblem(certificate, issuers.issuer, amdScheme, 0);
  if (problem) return problemOf(problem, "the VCEK");
  const vek = readVek(certificate);
  if ("reason" in vek) return { problem: sentenceOf(vek) };
  if (vek.hwid !== hwid) return problemOf("vcek-hwid", "");
  const named = Object.entries(tcbParts(tcb, product)) as [keyof TcbParts, number][];
  if (named.some(([part, value]) => vek.tcb[part] !== value)) return problemOf("vcek-tcb", tcb);
  return { from: certificate.notBefore, until: certificate.notAfter };
}

const problemOf = (reason: Reason, about: string) => ({ problem: sentenceOf({ reason, about }) });

const ofProduct = `(?<product>${products.join("|")})`;
/** The file names in a folder, by kind. The named groups become fields of the kind. */
const names: Readonly<Record<EndorsementKind["document"], RegExp>> = {
  "intel-root-list": /^intel\/root\.crl$/,
  "intel-pck-list": /^intel\/pck-(?<ca>platform|processor)\.crl$/,
  "intel-qe-identity": /^intel\/tdx-qe\.json$/,
  "intel-tcb-info": /^intel\/tcb\/(?<fmspc>[0-9a-f]{12})(?<early>\.early)?\.json$/,
  "amd-list": new RegExp(`^amd/${ofProduct}/(?<signer>vcek|vlek)\\.crl$`),
  "amd-vcek": new RegExp(
    `^amd/${ofProduct}/vcek/(?<hwid>[0-9a-f]{128}|[0-9a-f]{16})-(?<tcb>[0-9a-f]{16})\\.der$`,
  ),
};

/**
 * The kind of a file by its name, which is relative to the folder. Undefined for any other file.
 */
export function endorsementNamed(name: string): EndorsementKind | undefined {
  for (const [kind, pattern] of Object.entries(names)) {
    const match = pattern.exec(name);
    if (match) return { document: kind, ...match.groups } as EndorsementKind;
  }
  return undefined;
}

/**
 * The name of the file with the chain of this file's signer. Undefined when a root signed the file.
 */
export function chainNameOf(name: string): string | undefined {
  return /^intel\/(pck-|tdx-qe|tcb\/)/.test(name) ? name.replace(/\.\w+$/, ".pem") : undefined;
}
