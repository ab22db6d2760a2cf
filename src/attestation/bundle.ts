import type { AttestationReport } from "../fleet/compute/compute.ts";
import { UserError } from "../errors.ts";
import { hexDigits } from "../text/hex-digits.ts";
import { canonical } from "../text/canonical-json.ts";
import { parseJson } from "../text/parse-json.ts";
import { fingerprint, isSignature, keyDigest } from "../text/signed-text.ts";
import { appraiseEvidence } from "../verifier/appraise-evidence.ts";
import type { AppraisalOptions, AttestationResult } from "../verifier/attestation-result.ts";
import type { TrustedRoots } from "../verifier/roots.ts";
import { verifyEncoded } from "../verifier/verify-evidence.ts";
import type { Verdict } from "./appraise.ts";
import type { Attested } from "./appraiser.ts";
import type { NamedVm } from "./pins.ts";
import { resultLines, second } from "./render-attestation.ts";
import { upperFirst } from "../text/letter-case.ts";

const format = "gatehouse-evidence-1";

/**
 * Everything that the results of some VMs follow from, for someone who wants to appraise them again
 * without Gatehouse or a network.
 */
export interface EvidenceBundle {
  format: typeof format;
  /** Each set appears once, because one vendor's lists serve many VMs. Bytes are base64. */
  endorsements: readonly StoredEndorsements[];
  vms: readonly {
    vm: NamedVm;
    /** Our clock at the appraisal (ms). The result is valid for that time. */
    at: number;
    report: AttestationReport;
    options: AppraisalOptions;
    verdict: Verdict;
    /** An index in `endorsements`. */
    by: number;
  }[];
  /** VMs without a raw report, and why there is none. */
  without: readonly { vm: Pick<NamedVm, "id" | "name">; why: string }[];
  /** The head of the audit trail at that time, which proves that the bundle isn't older. */
  auditHead?: { seq: number; hash: string };
  /** The audit trail's key: Ed25519, SPKI, base64. */
  signedBy?: string;
  /** The signature of `signedText`, base64. */
  signature?: string;
}

type StoredEndorsements = Partial<Record<"intel" | "amd", Readonly<Record<string, unknown>>>>;

/** The audit trail's key and its head. What is signed with them was made after that head. */
export interface Signing {
  signer: { publicKey: string; sign(text: string): string } | undefined;
  auditHead: EvidenceBundle["auditHead"];
}

/** One VM of a bundle. */
export interface BundledVm {
  vm: NamedVm;
  /** With all that its appraisal follows from. */
  attested?: Attested;
  /** Why there is no appraisal. */
  unread?: string;
}

/** Returns the bundle of attested VMs, each with its evidence or the reason why it has none. */
export function bundleOf(
  rows: readonly BundledVm[],
  { signer, auditHead }: Signing,
): EvidenceBundle {
  const places = new Map<string, number>();
  const endorsements: StoredEndorsements[] = [];
  const vms: EvidenceBundle["vms"][number][] = [];
  const without: EvidenceBundle["without"][number][] = [];
  for (const { vm, attested, unread } of rows) {
    const { id, name, projectId, projectName } = vm;
    const { report, appraisal, basis } = attested ?? {};
    if (!report || !basis || !appraisal) {
      without.push({ vm: { id, name }, why: unread ?? appraisal?.reasons.join("; ") ?? "" });
      continue;
    }
    const { options } = basis;
    const encoded = mapped(basis.endorsements, (value) =>
      Buffer.isBuffer(value) ? value.toString("base64") : value,
    );
    const place = places.getOrInsertComputed(
      canonical(encoded),
      () => endorsements.push(encoded) - 1,
    );
    const named = { id, name, projectId, projectName };
    const { verdict } = appraisal;
    vms.push({ vm: named, at: options.now, report, options, verdict, by: place });
  }
  const bundle: EvidenceBundle = {
    format,
    endorsements,
    vms,
    without,
    ...(auditHead ? { auditHead } : {}),
    ...(signer ? { signedBy: signer.publicKey } : {}),
  };
  return signer ? { ...bundle, signature: signer.sign(signedText(bundle)) } : bundle;
}

/** Everything but the signature, in canonical form. */
function signedText({ signature: _its, ...rest }: EvidenceBundle): string {
  return `gatehouse evidence bundle\n${canonical(rest)}`;
}

/**
 * Applies `change` to each value of each vendor's part: bytes become text in a bundle, and text
 * becomes bytes again.
 */
const mapped = (all: object, change: (value: unknown) => unknown): Record<string, object> =>
  Object.fromEntries(
    Object.entries(all).map(([vendor, part]: [string, object]) => [
      vendor,
      Object.fromEntries(Object.entries(part).map(([name, value]) => [name, change(value)])),
    ]),
  );

/**
 * Parses a bundle. Undefined for any other file. Nothing in it may be relied on without being
 * checked. Throws for an incomplete bundle.
 */
export function readBundle(file: Buffer): EvidenceBundle | undefined {
  const json = file[0] === 0x7b ? parseJson(file.toString("utf8")) : undefined;
  if (typeof json !== "object" || json === null || !("format" in json)) return undefined;
  if (json.format !== format) return undefined;
  const { endorsements, vms, without } = json as Partial<EvidenceBundle>;
  if ([endorsements, vms, without].every(Array.isArray)) return json as EvidenceBundle;
  throw notWhole();
}

const notWhole = () => new UserError("The bundle isn't whole");

/**
 * Appraises each VM again by the bundle's own clock, endorsements, pins, and policy. Nobody but the
 * bundle's signer vouches for those; `trusted` are the signers that the reader names. The verdict
 * is the worst of all VMs; a VM without a report couldn't be verified. `lines` are for a terminal,
 * the verdict first. Throws for an incomplete bundle.
 */
export function judgeBundle(
  bundle: EvidenceBundle,
  roots: TrustedRoots,
  trusted: readonly string[],
): { lines: readonly string[]; verdict: Verdict } {
  const judged = bundle.vms.map((entry) => ({ ...entry, result: resultOf(entry, bundle, roots) }));
  const { lines, verdict } = inLines(judged, bundle);
  const { auditHead: head, signedBy = "" } = bundle;
  const notes = head
    ? [`Note: made after record ${head.seq} of the audit trail, ${head.hash}`]
    : [];
  const against = signerProblem(bundle, trusted);
  if (!against) {
    const signedNote = `Note: clock, pins, and policy are as signed by the key ${fingerprint(signedBy)}, which --signer names`;
    return { verdict, lines: [...lines, signedNote, ...notes] };
  }
  // Evidence that fails needs no signature of the bundle to be believed.
  if (verdict === "failed" && against.verdict !== "failed")
    return { verdict, lines: [...lines, `Note: ${against.sentence}`, ...notes] };
  // The result of the evidence by itself is shown below.
  const [first = "", ...more] = lines;
  const alone = `By the bundle's own clock, pins, and policy: ${first}`;
  return {
    verdict: against.verdict,
    lines: [`${upperFirst(against.verdict)}: ${against.sentence}.`, alone, ...more, ...notes],
  };
}

type Judged = EvidenceBundle["vms"][number] & { result: AttestationResult };

function resultOf(
  { at, report, options, vm, by: endorsementIndex }: EvidenceBundle["vms"][number],
  bundle: EvidenceBundle,
  roots: TrustedRoots,
): AttestationResult {
  const stored = bundle.endorsements[endorsementIndex];
  const isWhole = [report, options, vm, stored].every(
    (part) => typeof part === "object" && part !== null,
  );
  if (!isWhole || !stored || typeof at !== "number") throw notWhole();
  const endorsements = mapped(stored, (value) =>
    typeof value === "string" ? Buffer.from(value, "base64") : value,
  );
  const verification = verifyEncoded(report.report, endorsements, { now: at, roots });
  return appraiseEvidence(verification, { ...options, now: at });
}

const worstFirst: readonly Verdict[] = ["failed", "could not verify", "verified"];

/** One line for each VM, the worst first. For a single VM, all that its result says. */
function inLines(judged: readonly Judged[], { without }: EvidenceBundle) {
  const rows = [
    ...judged.map(({ vm, at, verdict: claimedVerdict, result: { verdict, reasons } }) => {
      const differs = verdict === claimedVerdict ? "" : ` (the bundle says ${claimedVerdict})`;
      const why = reasons.map(({ says }) => says).join("; ");
      return { verdict, text: `${vm.name} (${vm.id}), at ${second(at)}: ${why}${differs}` };
    }),
    ...without.map(({ vm, why }) => {
      const text = `${vm.name} (${vm.id}): no report: ${why}`;
      return { verdict: "could not verify" as const, text };
    }),
  ];
  const groups = worstFirst
    .map((verdict) => ({ verdict, of: rows.filter((row) => row.verdict === verdict) }))
    .filter(({ of }) => of.length > 0);
  const counts = groups.map(({ verdict, of }) => `${of.length} ${verdict}`);
  const verdict = groups[0]?.verdict ?? "could not verify";
  const [only] = judged;
  if (only && rows.length === 1)
    return {
      verdict,
      lines: [
        ...resultLines(only.result, { at: only.at }),
        `  VM                 ${only.vm.name} (${only.vm.id})`,
        ...(verdict === only.verdict ? [] : [`Note: the bundle says ${only.verdict}`]),
      ],
    };
  const lines = groups.flatMap(({ of }) => of.map((row) => `  ${row.verdict}: ${row.text}`));
  return { verdict, lines: [`${rows.length} VMs: ${counts.join(", ")}`, ...lines] };
}

/**
 * Why the parts of a bundle that no vendor signs must not be relied on. Undefined when they may be.
 */
function signerProblem(
  bundle: EvidenceBundle,
  trusted: readonly string[],
): { verdict: "failed" | "could not verify"; sentence: string } | undefined {
  const { signedBy: key = "", signature } = bundle;
  if (signature === undefined) {
    const sentence =
      "nobody signed the bundle, so its clock, pins, and policy are as anyone wrote them";
    return { verdict: "could not verify", sentence };
  }
  if (!isSignature(signedText(bundle), key, signature))
    return { verdict: "failed", sentence: "the bundle was changed after it was signed" };
  if ([key, fingerprint(key), keyDigest(key)].some((name) => trusted.includes(name)))
    return undefined;
  const signerWords = `the bundle is signed by the key ${fingerprint(key)}`;
  if (trusted.length > 0)
    return { verdict: "failed", sentence: `${signerWords}, which is none that --signer names` };
  const sentence = `${signerWords}, and nobody said whether that is Gatehouse's: name the key that you trust with --signer (\`audit verify\` shows it)`;
  return { verdict: "could not verify", sentence };
}

/**
 * Parses a signer: a fingerprint as people compare keys, a whole SHA-256, or the key itself. Throws
 * for anything else.
 */
export function signerNamed(text: string): string {
  const hex = hexDigits(text);
  if (hex !== undefined && [16, 64].includes(hex.length)) return hex;
  const base64 = text.replaceAll(/-----[A-Z ]+-----|\s/g, "");
  // Ed25519, SPKI.
  if (/^[A-Za-z0-9+/]{58}==?$|^[A-Za-z0-9+/]{59}=$/.test(base64)) return base64;
  throw new UserError(`${text.slice(0, 200)} is no key`, "like 9f86d081884c7d65");
}
