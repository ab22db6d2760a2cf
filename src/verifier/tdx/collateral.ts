import { type Certificate, intelScheme, linkProblem, parseCertificate } from "../certificate.ts";
import { exactTime } from "../der.ts";
import type { Examination } from "../examination.ts";
import { readPem } from "../pem.ts";
import type { TrustedRoots } from "../roots.ts";
import { isSignedRaw, readKey } from "../signature.ts";
import { parseJson } from "../../text/parse-json.ts";
import { type QeIdentity, readQeIdentity, readTcbInfo, type TcbInfo } from "./collateral-values.ts";

/** An answer of Intel's service as it came, and the chain of its header, as PEM. */
export interface SignedAnswer {
  body: string;
  chain: string;
}

/** What Intel has signed about a platform beside its root, as it came from Intel or from a cache of it. */
export interface IntelEndorsements {
  tcbInfo?: SignedAnswer | undefined;
  qeIdentity?: SignedAnswer | undefined;
  /** The PCK certificates that are revoked, by the CA that is in the quote; DER. */
  pckCrl?: Buffer | undefined;
  /** The CAs and TCB signers that are revoked; DER. */
  rootCrl?: Buffer | undefined;
}

const kinds = {
  tcbInfo: { what: "Intel's TCB info", field: "tcbInfo", id: "TDX", version: 3 },
  qeIdentity: {
    what: "Intel's identity of the quoting enclave",
    field: "enclaveIdentity",
    id: "TD_QE",
    version: 2,
  },
} as const;

export interface Collateral {
  tcbInfo: TcbInfo | undefined;
  qeIdentity: QeIdentity | undefined;
}

/** What Intel says about the platform's level, each part only when its signature holds and it is in its time. */
export function checkCollateral(
  { tcbInfo, qeIdentity }: IntelEndorsements,
  roots: TrustedRoots,
  revoked: ReadonlySet<string>,
  exam: Examination,
): Collateral {
  const signer = tcbInfo && signerOf(tcbInfo.chain, roots);
  // Nearly always the same: one check is enough
  const isSame = tcbInfo !== undefined && tcbInfo.chain === qeIdentity?.chain;
  const other = isSame ? signer : qeIdentity && signerOf(qeIdentity.chain, roots);
  const info = authenticate("tcbInfo", tcbInfo, signer, revoked, exam);
  const identity = authenticate("qeIdentity", qeIdentity, other, revoked, exam);
  return {
    tcbInfo: info && read("tcbInfo", info, readTcbInfo, exam),
    qeIdentity: identity && read("qeIdentity", identity, readQeIdentity, exam),
  };
}

/** The value whose exact text Intel's TCB signer has signed. It is parsed only after that. */
function authenticate(
  kind: keyof typeof kinds,
  answer: SignedAnswer | undefined,
  signer: Certificate | undefined,
  revoked: ReadonlySet<string>,
  exam: Examination,
): object | undefined {
  const { what, field } = kinds[kind];
  if (!answer) return exam.add("collateral-missing", what);
  const parts = new RegExp(
    `^\\s*\\{"${field}":(\\{[^]*\\}),"signature":"([0-9a-fA-F]{128})"\\}\\s*$`,
  ).exec(answer.body);
  const [, text, signature] = parts ?? [];
  if (text === undefined || signature === undefined) return exam.add("collateral-malformed", what);
  if (!signer) return exam.add("collateral-chain", what);
  // A signer whom Intel took back may have signed anything
  if (revoked.has(signer.serial.toString("hex"))) return exam.add("collateral-chain", what);
  const key = readKey(signer.publicKey, "P-256");
  const bytes = Buffer.from(signature, "hex");
  if (!key || !isSignedRaw("sha256", Buffer.from(text, "utf8"), key, bytes))
    return exam.add("collateral-signature", what);
  const { notBefore: from, notAfter: until } = signer;
  exam.lasts("collateral", `the signer of ${what}`, { from, until }, false);
  const json = parseJson(text);
  if (typeof json === "object" && json !== null) return json;
  return exam.add("collateral-kind", `${what} that is no JSON`);
}

/**
 * The certificate of Intel's TCB signer, right under the pinned root. Any other leaf there, a PCK first of all, could
 * otherwise set the levels that it is judged by.
 */
function signerOf(chain: string, roots: TrustedRoots): Certificate | undefined {
  const ders = readPem(chain);
  const [first, root] = ders ?? [];
  if (ders?.length !== 2 || !first || !root?.equals(roots.intel)) return undefined;
  const [signer, issuer] = [parseCertificate(first), parseCertificate(root)];
  if (!signer || !issuer || signer.commonName !== "Intel SGX TCB Signing") return undefined;
  if (signer.basic?.isCa) return undefined;
  return linkProblem(signer, issuer, intelScheme, 0) === undefined ? signer : undefined;
}

/** Of the kind and version that this code understands, and in its time; else undefined, and the problem is noted. */
function read<T extends { issueDate: string; nextUpdate: string; evaluation: number }>(
  kind: keyof typeof kinds,
  json: object,
  readValue: (json: unknown) => T | undefined,
  exam: Examination,
): T | undefined {
  const { id, version } = kinds[kind];
  const what: string = kinds[kind].what;
  const found = { id: undefined, version: undefined, ...json };
  if (found.id !== id || found.version !== version)
    return exam.add("collateral-kind", `${String(found.id)}, version ${String(found.version)}`);
  const value = readValue(json);
  const [from, until] = [exactTime(value?.issueDate), exactTime(value?.nextUpdate)];
  if (!value || from === undefined || until === undefined)
    return exam.add("collateral-kind", `${what} in a form of its own`);
  exam.lasts("collateral", what, { from, until });
  const of = "fmspc" in value ? `${kind} ${String(value.fmspc)}` : kind;
  exam.isNewest("collateral", what, of, { number: BigInt(value.evaluation), from });
  return exam.now >= from && exam.now <= until ? value : undefined;
}
