import * as z from "zod";
import { type Certificate, parseCertificates, intelScheme, linkProblem } from "../certificate.ts";
import { exactTime } from "../der.ts";
import { formOfText } from "../endorsement-form.ts";
import type { Examination } from "../examination.ts";
import type { TrustedRoots } from "../roots.ts";
import { isSignedRaw, readKey } from "../signature.ts";
import { parseJson } from "../../text/parse-json.ts";

/** An answer of Intel's service as it was received, and the chain from its header, as PEM. */
export interface SignedAnswer {
  body: string;
  chain: string;
}

/**
 * The data about a platform that Intel signs besides its root, as it came from Intel or from a
 * cache.
 */
export interface IntelEndorsements {
  tcbInfo?: SignedAnswer | undefined;
  qeIdentity?: SignedAnswer | undefined;
  /** The revoked PCK certificates of the CA that is in the quote; DER. */
  pckCrl?: Buffer | undefined;
  /** The revoked CAs and TCB signers; DER. */
  rootCrl?: Buffer | undefined;
}

const kinds = {
  tcbInfo: { description: "Intel's TCB info", field: "tcbInfo", id: "TDX", version: 3 },
  qeIdentity: {
    description: "Intel's identity of the quoting enclave",
    field: "enclaveIdentity",
    id: "TD_QE",
    version: 2,
  },
} as const;

/**
 * Checks what Intel states about the platform's TCB level. A part is returned only when its
 * signature holds and it is within its validity.
 */
export function checkCollateral(
  { tcbInfo, qeIdentity }: IntelEndorsements,
  roots: TrustedRoots,
  revoked: ReadonlySet<string>,
  exam: Examination,
) {
  const info = authenticate("tcbInfo", tcbInfo, roots, revoked, exam);
  const identity = authenticate("qeIdentity", qeIdentity, roots, revoked, exam);
  return {
    tcbInfo: info && readCollateral("tcbInfo", info, tcbInfoForm, exam),
    qeIdentity: identity && readCollateral("qeIdentity", identity, qeIdentityForm, exam),
  };
}

/**
 * Checks that Intel's TCB signer signed the exact text of the value. The text is parsed only after
 * that.
 */
function authenticate(
  kind: keyof typeof kinds,
  answer: SignedAnswer | undefined,
  roots: TrustedRoots,
  revoked: ReadonlySet<string>,
  exam: Examination,
): object | undefined {
  const { description, field } = kinds[kind];
  if (!answer) return exam.add("collateral-missing", description);
  const parts = new RegExp(
    `^\\s*\\{"${field}":(\\{[^]*\\}),"signature":"([0-9a-fA-F]{128})"\\}\\s*$`,
  ).exec(answer.body);
  const [, text, signature] = parts ?? [];
  if (text === undefined || signature === undefined)
    return exam.add("collateral-malformed", aboutAnswer(description, answer.body));
  const chain = parseCertificates(answer.chain);
  if (!chain)
    return exam.add(
      "collateral-malformed",
      aboutChain(`the chain of ${description}`, answer.chain),
    );
  // The chain must be the signer's certificate and the root. A file that was cut, or contains more,
  // says nothing about who signed.
  if (chain.length !== 2)
    return exam.add(
      "collateral-malformed",
      `the chain of ${description}, ${howMany(chain.length)},`,
    );
  const signer = signerOf(answer.chain, roots);
  if (!signer) return exam.add("collateral-chain", description);
  // A revoked signer may have signed anything.
  if (revoked.has(signer.serial.toString("hex"))) return exam.add("collateral-chain", description);
  const key = readKey(signer.publicKey, "P-256");
  const bytes = Buffer.from(signature, "hex");
  if (!key || !isSignedRaw("sha256", Buffer.from(text, "utf8"), key, bytes))
    return exam.add("collateral-signature", description);
  const { notBefore: from, notAfter: until } = signer;
  const certified = { from, until };
  exam.lasts("collateral", `the signer of ${description}`, certified, { isRenewed: false });
  const json = parseJson(text);
  if (typeof json === "object" && json !== null) return json;
  return exam.add("collateral-kind", `${description} that is no JSON`);
}

function aboutAnswer(description: string, body: string): string {
  const form = formOfText(body);
  return `${description}, which is ${form === "JSON" ? "JSON that isn't as Intel sent it" : form},`;
}

const howMany = (certificates: number) =>
  `which has ${certificates} ${certificates === 1 ? "certificate" : "certificates"} and not 2`;

/** Names a chain, with what the file contains instead of certificates in PEM. */
export function aboutChain(description: string, chain: string): string {
  return `${description}, which is ${formOfText(chain)},`;
}

/**
 * The certificate of Intel's TCB signer, directly below the pinned root. Any other leaf, a PCK
 * certificate above all, could otherwise set the levels by which it is judged.
 */
function signerOf(chain: string, roots: TrustedRoots): Certificate | undefined {
  const all = parseCertificates(chain);
  const [signer, root] = all ?? [];
  if (all?.length !== 2 || !signer || !root?.der.equals(roots.intel)) return undefined;
  if (signer.basic?.isCa || signer.commonName !== "Intel SGX TCB Signing") return undefined;
  return linkProblem(signer, root, intelScheme, 0) === undefined ? signer : undefined;
}

/**
 * Parses collateral of the kind and version that this code understands. Undefined when that fails
 * or it isn't within its validity; the problem is then recorded.
 */
function readCollateral<T extends { issueDate: number; nextUpdate: number; evaluation: number }>(
  kind: keyof typeof kinds,
  json: object,
  form: z.ZodType<T>,
  exam: Examination,
): T | undefined {
  const { id, version } = kinds[kind];
  const description: string = kinds[kind].description;
  const header = { id: undefined, version: undefined, ...json };
  if (header.id !== id || header.version !== version)
    return exam.add("collateral-kind", `${String(header.id)}, version ${String(header.version)}`);
  const { data: value } = form.safeParse(json);
  if (!value) return exam.add("collateral-kind", `${description} in a form of its own`);
  const { issueDate: from, nextUpdate: until } = value;
  exam.lasts("collateral", description, { from, until });
  const of = "fmspc" in value ? `${kind} ${String(value.fmspc)}` : kind;
  exam.isNewest("collateral", description, of, { number: BigInt(value.evaluation), from });
  return exam.now >= from && exam.now <= until ? value : undefined;
}

const time = z.string().transform(exactTime).pipe(z.number());
const count = z.int().nonnegative();
/** Hex, converted to lower case. */
const hex = (bytes: number) =>
  z
    .string()
    .toLowerCase()
    .regex(new RegExp(`^[0-9a-f]{${bytes * 2}}$`));
const bytesOf = (many: number) => hex(many).transform((text) => Buffer.from(text, "hex"));

const level = z.object({
  tcbStatus: z.string(),
  tcbDate: z.string(),
  advisoryIDs: z.array(z.string()).default([]),
});

/** `date` is when Intel set this level. */
const levelOf = ({ tcbStatus, tcbDate, advisoryIDs }: z.output<typeof level>) => ({
  status: tcbStatus,
  date: tcbDate,
  advisories: advisoryIDs,
});
export type Level = ReturnType<typeof levelOf>;

const svnLevel = level
  .extend({ tcb: z.object({ isvsvn: count }) })
  .transform(({ tcb, ...fields }) => ({ ...levelOf(fields), svn: tcb.isvsvn }));

/** The vendor's name for a component, if it has one. It decides nothing. */
const called = z.string().catch("");
const components = z.array(z.object({ svn: count, type: called, category: called })).length(16);

const platformLevel = level
  .extend({
    tcb: z.object({ sgxtcbcomponents: components, tdxtcbcomponents: components, pcesvn: count }),
  })
  .transform(({ tcb, ...fields }) => ({
    ...levelOf(fields),
    sgx: tcb.sgxtcbcomponents,
    tdx: tcb.tdxtcbcomponents,
    pceSvn: tcb.pcesvn,
  }));

const tdxModule = z.object({ mrsigner: hex(48), attributes: hex(8) });

const signed = { issueDate: time, nextUpdate: time, tcbEvaluationDataNumber: count };

/**
 * The forms of Intel's JSON (TCB info of version 3, enclave identity of version 2). Something
 * signed may still have a form that this code doesn't know. A level that can't be read must not be
 * skipped, because the next lower one would then count.
 * https://api.portal.trustedservices.intel.com/content/documentation.html
 */
const tcbInfoForm = z
  .object({
    ...signed,
    fmspc: hex(6),
    pceId: hex(2),
    tdxModule,
    // Absent for platforms with the first module only.
    tdxModuleIdentities: z
      .array(tdxModule.extend({ id: z.string().toUpperCase(), tcbLevels: z.array(svnLevel) }))
      .default([]),
    tcbLevels: z.array(platformLevel),
  })
  .transform(({ tcbEvaluationDataNumber: evaluation, ...fields }) => ({ ...fields, evaluation }));
export type TcbInfo = z.output<typeof tcbInfoForm>;

const qeIdentityForm = z
  .object({
    ...signed,
    miscselect: bytesOf(4),
    miscselectMask: bytesOf(4),
    attributes: bytesOf(16),
    attributesMask: bytesOf(16),
    mrsigner: hex(32),
    isvprodid: count,
    tcbLevels: z.array(svnLevel),
  })
  .transform(({ tcbEvaluationDataNumber: evaluation, ...fields }) => ({ ...fields, evaluation }));
export type QeIdentity = z.output<typeof qeIdentityForm>;
