import { type Certificate, intelScheme, linkProblem, parseCertificate } from "../certificate.ts";
import { exactTime } from "../der.ts";
import type { Examination } from "../examination.ts";
import { readPem } from "../pem.ts";
import type { TrustedRoots } from "../roots.ts";
import { isSignedRaw, readKey } from "../signature.ts";
import { parseJson } from "../../text/parse-json.ts";

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

/** What Intel says about the platform's level, each part only when its signature holds and it is in its time. */
export function checkCollateral(
  { tcbInfo, qeIdentity }: IntelEndorsements,
  roots: TrustedRoots,
  revoked: ReadonlySet<string>,
  exam: Examination,
) {
  const info = authenticate("tcbInfo", tcbInfo, roots, revoked, exam);
  const identity = authenticate("qeIdentity", qeIdentity, roots, revoked, exam);
  return {
    tcbInfo: info && read("tcbInfo", info, readTcbInfo, exam),
    qeIdentity: identity && read("qeIdentity", identity, readQeIdentity, exam),
  };
}

/** The value whose exact text Intel's TCB signer has signed. It is parsed only after that. */
function authenticate(
  kind: keyof typeof kinds,
  answer: SignedAnswer | undefined,
  roots: TrustedRoots,
  revoked: ReadonlySet<string>,
  exam: Examination,
): Fields | undefined {
  const { what, field } = kinds[kind];
  if (!answer) return exam.add("collateral-missing", what);
  const parts = new RegExp(
    `^\\s*\\{"${field}":(\\{[^]*\\}),"signature":"([0-9a-fA-F]{128})"\\}\\s*$`,
  ).exec(answer.body);
  const [, text, signature] = parts ?? [];
  if (text === undefined || signature === undefined) return exam.add("collateral-malformed", what);
  const signer = signerOf(answer.chain, roots);
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
  if (typeof json === "object" && json !== null) return json as Fields;
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
  json: Fields,
  readValue: (json: Fields) => T | undefined,
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

/**
 * What stands in Intel's JSON (TCB info of version 3, enclave identity of version 2), read field by field: what is signed
 * may still be of a form that this code doesn't know. Hex becomes lower case.
 * https://api.portal.trustedservices.intel.com/content/documentation.html
 */
export type TcbInfo = NonNullable<ReturnType<typeof readTcbInfo>>;
export type QeIdentity = NonNullable<ReturnType<typeof readQeIdentity>>;
/** `date` is when Intel set this bar. */
export type Level = NonNullable<ReturnType<typeof readLevel>>;

type Fields = Record<string, unknown>;

const fieldsOf = (value: unknown): Fields | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Fields)
    : undefined;
const textOf = (value: unknown) => (typeof value === "string" ? value : undefined);
const countOf = (value: unknown) =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;

function hexOf(value: unknown, bytes: number): string | undefined {
  const text = textOf(value)?.toLowerCase();
  return text?.length === bytes * 2 && /^[0-9a-f]*$/.test(text) ? text : undefined;
}

const bytesOf = (value: unknown, bytes: number) => {
  const hex = hexOf(value, bytes);
  return hex === undefined ? undefined : Buffer.from(hex, "hex");
};

/** All of them, or undefined: a level that can't be read must not be skipped, the one below it would count. */
function each<T>(
  value: unknown,
  readOne: (fields: Fields) => T | undefined,
): readonly T[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const all = value.map((one: unknown) => {
    const fields = fieldsOf(one);
    return fields && readOne(fields);
  });
  const known = all.filter((one) => one !== undefined);
  return known.length === all.length ? known : undefined;
}

type Whole<T> = { [K in keyof T]: Exclude<T[K], undefined> };

/** The object when each of its fields is there. */
function whole<T extends object>(fields: T): Whole<T> | undefined {
  return Object.values(fields).every((value) => value !== undefined)
    ? (fields as Whole<T>)
    : undefined;
}

function readLevel(fields: Fields) {
  return whole({
    status: textOf(fields["tcbStatus"]),
    date: textOf(fields["tcbDate"]),
    advisories: readAdvisories(fields["advisoryIDs"] ?? []),
  });
}

function readAdvisories(ids: unknown): readonly string[] | undefined {
  return Array.isArray(ids) && ids.every((id) => typeof id === "string") ? ids : undefined;
}

function readSvnLevel(fields: Fields) {
  const level = readLevel(fields);
  return level && whole({ ...level, svn: countOf(fieldsOf(fields["tcb"])?.["isvsvn"]) });
}

function readPlatformLevel(fields: Fields) {
  const [level, tcb] = [readLevel(fields), fieldsOf(fields["tcb"])];
  const svns = (name: string) => {
    const all = each(tcb?.[name], ({ svn }) => countOf(svn));
    return all?.length === 16 ? all : undefined;
  };
  /** What the vendor calls each, where it does: nothing depends on it. */
  const names = (name: string) =>
    each(tcb?.[name], ({ type, category }) => [textOf(type) ?? "", textOf(category) ?? ""]) ?? [];
  return (
    level &&
    whole({
      ...level,
      sgx: svns("sgxtcbcomponents"),
      tdx: svns("tdxtcbcomponents"),
      names: [...names("sgxtcbcomponents"), ...names("tdxtcbcomponents")],
      pceSvn: countOf(tcb?.["pcesvn"]),
    })
  );
}

const readModule = (fields: Fields | undefined) =>
  fields &&
  whole({ mrSigner: hexOf(fields["mrsigner"], 48), attributes: hexOf(fields["attributes"], 8) });

function readTcbInfo(fields: Fields) {
  return whole({
    issueDate: textOf(fields["issueDate"]),
    nextUpdate: textOf(fields["nextUpdate"]),
    fmspc: hexOf(fields["fmspc"], 6),
    pceId: hexOf(fields["pceId"], 2),
    evaluation: countOf(fields["tcbEvaluationDataNumber"]),
    tdxModule: readModule(fieldsOf(fields["tdxModule"])),
    // Not there for platforms with the first module alone
    moduleIdentities: each(fields["tdxModuleIdentities"] ?? [], (one) => {
      const its = readModule(one);
      const levels = each(one["tcbLevels"], readSvnLevel);
      return its && whole({ ...its, id: textOf(one["id"])?.toUpperCase(), levels });
    }),
    levels: each(fields["tcbLevels"], readPlatformLevel),
  });
}

function readQeIdentity(fields: Fields) {
  return whole({
    issueDate: textOf(fields["issueDate"]),
    nextUpdate: textOf(fields["nextUpdate"]),
    evaluation: countOf(fields["tcbEvaluationDataNumber"]),
    miscSelect: bytesOf(fields["miscselect"], 4),
    miscSelectMask: bytesOf(fields["miscselectMask"], 4),
    attributes: bytesOf(fields["attributes"], 16),
    attributesMask: bytesOf(fields["attributesMask"], 16),
    mrSigner: hexOf(fields["mrsigner"], 32),
    productId: countOf(fields["isvprodid"]),
    levels: each(fields["tcbLevels"], readSvnLevel),
  });
}
