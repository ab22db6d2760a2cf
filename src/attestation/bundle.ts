import { createHash, createPublicKey, verify } from "node:crypto";
import type { AttestationReport } from "../compute/compute.ts";
import { UserError } from "../errors.ts";
import { canonical } from "../text/canonical-json.ts";
import { parseJson } from "../text/parse-json.ts";
import { appraiseEvidence } from "../verifier/appraise-evidence.ts";
import type { AppraisalOptions, AttestationResult } from "../verifier/attestation-result.ts";
import type { TrustedRoots } from "../verifier/roots.ts";
import { type Endorsements, verifyEncoded } from "../verifier/verify-evidence.ts";
import type { Attested } from "./appraiser.ts";
import type { NamedVm } from "./pins.ts";
import { resultLines } from "./render-result.ts";

const format = "gatehouse-evidence-1";

/** Everything that a result follows from, for whoever wants to judge it again without Gatehouse or a network. */
export interface EvidenceBundle {
  format: typeof format;
  vm: NamedVm;
  /** Our clock when it was judged (ms); the result is of then. */
  at: number;
  report: AttestationReport;
  /** Bytes as base64. */
  endorsements: {
    intel?: Record<"tcbInfo" | "qeIdentity", { body: string; chain: string } | undefined> &
      Record<"pckCrl" | "rootCrl", string | undefined>;
    amd?: Record<"vek" | "crl", string | undefined>;
  };
  options: AppraisalOptions;
  verdict: AttestationResult["verdict"];
  /** The head of the audit trail then: the bundle was made after it. */
  auditHead?: { seq: number; hash: string };
  /** Ed25519, SPKI, base64: the key of the audit trail. */
  signedBy?: string;
  /** Over `signedText`, base64. */
  signature?: string;
}

/** The audit trail's key, and its head: what is signed was made after it. */
export interface Signing {
  signer: { publicKey: string; sign(text: string): string } | undefined;
  auditHead: EvidenceBundle["auditHead"];
}

/** Of a VM whose report was read; undefined without a raw report. */
export function bundleOf(
  vm: NamedVm,
  attested: Attested,
  signing: Signing,
): EvidenceBundle | undefined {
  const bundle = unsignedBundle(vm, attested);
  return bundle && signed(bundle, signing);
}

export function unsignedBundle(
  vm: NamedVm,
  { report, appraisal, by }: Attested,
): EvidenceBundle | undefined {
  if (!report || !appraisal.result) return undefined;
  const { id, name, projectId, projectName } = vm;
  const { intel, amd } = by.endorsements;
  const base64 = (bytes: Buffer | undefined) => bytes?.toString("base64");
  return {
    format,
    vm: { id, name, projectId, ...(projectName === undefined ? {} : { projectName }) },
    at: by.options.now,
    report,
    endorsements: {
      ...(intel
        ? {
            intel: {
              tcbInfo: intel.tcbInfo,
              qeIdentity: intel.qeIdentity,
              pckCrl: base64(intel.pckCrl),
              rootCrl: base64(intel.rootCrl),
            },
          }
        : {}),
      ...(amd ? { amd: { vek: base64(amd.vek), crl: base64(amd.crl) } } : {}),
    },
    options: by.options,
    verdict: appraisal.result.verdict,
  };
}

interface Signed {
  auditHead?: EvidenceBundle["auditHead"];
  signedBy?: string;
  signature?: string;
}

export function signed<T extends object>(bundle: T, { signer, auditHead }: Signing): T & Signed {
  const whole = {
    ...bundle,
    ...(auditHead ? { auditHead } : {}),
    ...(signer ? { signedBy: signer.publicKey } : {}),
  };
  return signer ? { ...whole, signature: signer.sign(signedText(whole)) } : whole;
}

/** Everything but the signature, in its one spelling. */
function signedText({ signature: _its, ...rest }: Signed): string {
  return `gatehouse evidence bundle\n${canonical(rest)}`;
}

/** Undefined for any other file. What stands in it is believed for nothing that isn't checked. */
export function readBundle(file: Buffer): EvidenceBundle | undefined {
  const json = file[0] === 0x7b ? parseJson(file.toString("utf8")) : undefined;
  const isBundle = typeof json === "object" && json !== null && "format" in json;
  return isBundle && json.format === format ? (json as EvidenceBundle) : undefined;
}

type Verdict = AttestationResult["verdict"];

/** What comes of a bundle; `lines` for a terminal, the verdict first. */
export interface JudgedBundle {
  lines: readonly string[];
  verdict: Verdict;
}

/**
 * Judges a bundle again, by its own clock, endorsements, pins, and policy, which count for as much as whoever signed them:
 * `trusted` are the signers that the reader names. Throws for one that isn't whole.
 */
export function judgeBundle(
  bundle: EvidenceBundle,
  roots: TrustedRoots,
  trusted: readonly string[],
): JudgedBundle {
  const result = resultOf(bundle, roots);
  return bySigner(bundle, trusted, {
    verdict: result.verdict,
    lines: [
      ...resultLines(result, { at: bundle.at, absent: [] }),
      `  VM                 ${bundle.vm.name} (${bundle.vm.id})`,
      ...(result.verdict === bundle.verdict ? [] : [`Note: the bundle says ${bundle.verdict}`]),
    ],
  });
}

/** The worst first. */
export const verdicts: readonly Verdict[] = ["failed", "could not verify", "verified"];

/** The judgment as far as its signer is trusted: what the evidence says by itself stands below then. */
export function bySigner(
  bundle: Signed,
  trusted: readonly string[],
  { lines, verdict }: JudgedBundle,
): JudgedBundle {
  const against = signerProblem(bundle, trusted);
  const notes = auditLines(bundle);
  if (!against) {
    const by = `Note: clock, pins, and policy are as signed by the key ${fingerprintOf(bundle.signedBy ?? "")}, which --signer names`;
    return { verdict, lines: [...lines, by, ...notes] };
  }
  // Evidence that fails needs nobody's word for it
  if (verdict === "failed" && against.verdict !== "failed")
    return { verdict, lines: [...lines, `Note: ${against.says}`, ...notes] };
  const [first = "", ...more] = lines;
  const title = against.verdict === "failed" ? "Failed" : "Could not verify";
  const alone = `By the bundle's own clock, pins, and policy: ${first}`;
  return {
    verdict: against.verdict,
    lines: [`${title}: ${against.says}.`, alone, ...more, ...notes],
  };
}

/** Why a bundle must not be believed for what no vendor signs. */
function signerProblem(
  bundle: Signed,
  trusted: readonly string[],
): { verdict: "failed" | "could not verify"; says: string } | undefined {
  const state = signatureIn(bundle);
  if (state === "broken")
    return { verdict: "failed", says: "the bundle was changed after it was signed" };
  if (state === "unsigned")
    return {
      verdict: "could not verify",
      says: "nobody signed the bundle, so its clock, pins, and policy are as anyone wrote them",
    };
  const key = bundle.signedBy ?? "";
  const names = [key, fingerprintOf(key), sha256Of(key)];
  if (names.some((name) => trusted.includes(name))) return undefined;
  const by = `the bundle is signed by the key ${fingerprintOf(key)}`;
  return trusted.length > 0
    ? { verdict: "failed", says: `${by}, which is none that --signer names` }
    : {
        verdict: "could not verify",
        says: `${by}, and nobody said whether that is Gatehouse's: name the key that you trust with --signer (\`audit verify\` shows it)`,
      };
}

/** A fingerprint as people compare keys, the whole SHA-256, or the key itself; undefined for anything else. */
export function signerNamed(text: string): string | undefined {
  const hex = text.toLowerCase().replaceAll(/[\s:]/g, "");
  if (/^([0-9a-f]{16}|[0-9a-f]{64})$/.test(hex)) return hex;
  const base64 = text.replaceAll(/-----[A-Z ]+-----|\s/g, "");
  // Ed25519, SPKI
  return /^[A-Za-z0-9+/]{58}==?$|^[A-Za-z0-9+/]{59}=$/.test(base64) ? base64 : undefined;
}

export function resultOf(bundle: EvidenceBundle, roots: TrustedRoots): AttestationResult {
  const { at, report, options } = bundle;
  const isWhole = [report, options, bundle.endorsements, bundle.vm].every(
    (part) => typeof part === "object" && part !== null,
  );
  if (!isWhole || typeof at !== "number") throw new UserError("The bundle isn't whole");
  const verification = verifyEncoded(report.report, endorsementsIn(bundle), { now: at, roots });
  return appraiseEvidence(verification, { ...options, now: at });
}

const auditLines = ({ auditHead }: Signed): readonly string[] =>
  auditHead
    ? [`Note: made after record ${auditHead.seq} of the audit trail, ${auditHead.hash}`]
    : [];

function endorsementsIn({ endorsements: { intel, amd } }: EvidenceBundle): Endorsements {
  const bytes = (base64: string | undefined) =>
    base64 === undefined ? undefined : Buffer.from(base64, "base64");
  return {
    ...(intel
      ? {
          intel: {
            tcbInfo: intel.tcbInfo,
            qeIdentity: intel.qeIdentity,
            pckCrl: bytes(intel.pckCrl),
            rootCrl: bytes(intel.rootCrl),
          },
        }
      : {}),
    ...(amd ? { amd: { vek: bytes(amd.vek), crl: bytes(amd.crl) } } : {}),
  };
}

function signatureIn(bundle: Signed): "holds" | "broken" | "unsigned" {
  const { signedBy, signature } = bundle;
  if (signature === undefined) return "unsigned";
  try {
    const key = createPublicKey({
      key: Buffer.from(signedBy ?? "", "base64"),
      type: "spki",
      format: "der",
    });
    const bytes = Buffer.from(signature ?? "", "base64");
    return verify(null, Buffer.from(signedText(bundle)), key, bytes) ? "holds" : "broken";
  } catch {
    return "broken";
  }
}

const sha256Of = (publicKey: string) =>
  createHash("sha256").update(Buffer.from(publicKey, "base64")).digest("hex");

/** As people compare keys of the audit trail. */
const fingerprintOf = (publicKey: string) => sha256Of(publicKey).slice(0, 16);
