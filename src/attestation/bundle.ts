import { createHash, createPublicKey, verify } from "node:crypto";
import type { AttestationReport } from "../compute/compute.ts";
import { UserError } from "../errors.ts";
import { canonical } from "../text/canonical-json.ts";
import { parseJson } from "../text/parse-json.ts";
import { appraiseEvidence } from "../verifier/appraise-evidence.ts";
import type { AppraisalOptions, AttestationResult } from "../verifier/attestation-result.ts";
import type { TrustedRoots } from "../verifier/roots.ts";
import { type Endorsements, verifyEncoded } from "../verifier/verify-evidence.ts";
import type { Verdict } from "./appraise.ts";
import type { NamedVm } from "./pins.ts";
import { type FleetRow, resultLines, second, verdictWords } from "./render-attestation.ts";

const format = "gatehouse-evidence-1";

/** Everything that the results of some VMs follow from, for whoever wants to judge them again without Gatehouse or a network. */
export interface EvidenceBundle {
  format: typeof format;
  /** Each once: one vendor's lists stand behind many VMs. Bytes as base64. */
  endorsements: readonly StoredEndorsements[];
  vms: readonly {
    vm: NamedVm;
    /** Our clock when it was judged (ms); the result is of then. */
    at: number;
    report: AttestationReport;
    options: AppraisalOptions;
    verdict: Verdict;
    /** A place in `endorsements`. */
    by: number;
  }[];
  /** Of whom there is no raw report, and why. */
  without: readonly { vm: Pick<NamedVm, "id" | "name">; why: string }[];
  /** The head of the audit trail then: the bundle was made after it. */
  auditHead?: { seq: number; hash: string };
  /** Ed25519, SPKI, base64: the key of the audit trail. */
  signedBy?: string;
  /** Over `signedText`, base64. */
  signature?: string;
}

type StoredEndorsements = Partial<Record<"intel" | "amd", Readonly<Record<string, unknown>>>>;

/** The audit trail's key, and its head: what is signed was made after it. */
export interface Signing {
  signer: { publicKey: string; sign(text: string): string } | undefined;
  auditHead: EvidenceBundle["auditHead"];
}

/** Of VMs that were attested, or why one could not be. */
export function bundleOf(
  rows: readonly Omit<FleetRow, "appraisal">[],
  signing: Signing,
): EvidenceBundle {
  const places = new Map<string, number>();
  const endorsements: StoredEndorsements[] = [];
  const vms: EvidenceBundle["vms"][number][] = [];
  const without: EvidenceBundle["without"][number][] = [];
  for (const { vm, attested, unread } of rows) {
    const { id, name, projectId, projectName } = vm;
    const { report, appraisal, by } = attested ?? {};
    if (!report || !by || !appraisal?.result) {
      const why = unread ?? appraisal?.reasons.join("; ") ?? "";
      without.push({ vm: { id, name }, why });
      continue;
    }
    const its = stored(by.endorsements);
    const text = canonical(its);
    const place = places.get(text) ?? endorsements.push(its) - 1;
    places.set(text, place);
    vms.push({
      vm: { id, name, projectId, projectName },
      at: by.options.now,
      report,
      options: by.options,
      verdict: appraisal.verdict,
      by: place,
    });
  }
  return signed({ format, endorsements, vms, without }, signing);
}

function signed(bundle: EvidenceBundle, { signer, auditHead }: Signing): EvidenceBundle {
  const whole = {
    ...bundle,
    ...(auditHead ? { auditHead } : {}),
    ...(signer ? { signedBy: signer.publicKey } : {}),
  };
  return signer ? { ...whole, signature: signer.sign(signedText(whole)) } : whole;
}

/** Everything but the signature, in its one spelling. */
function signedText({ signature: _its, ...rest }: EvidenceBundle): string {
  return `gatehouse evidence bundle\n${canonical(rest)}`;
}

/** Each vendor's part with what `change` makes of its values: bytes become text in a bundle, and bytes again. */
const mapped = (all: object, change: (value: unknown) => unknown) =>
  Object.fromEntries(
    Object.entries(all).map(([vendor, part]: [string, object]) => [
      vendor,
      Object.fromEntries(Object.entries(part).map(([name, value]) => [name, change(value)])),
    ]),
  );

const stored = (endorsements: Endorsements): StoredEndorsements =>
  mapped(endorsements, (value) => (Buffer.isBuffer(value) ? value.toString("base64") : value));

const restored = (endorsements: StoredEndorsements): Endorsements =>
  mapped(endorsements, (value) =>
    typeof value === "string" ? Buffer.from(value, "base64") : value,
  );

/** Undefined for any other file. What stands in it is believed for nothing that isn't checked. Throws for one that isn't whole. */
export function readBundle(file: Buffer): EvidenceBundle | undefined {
  const json = file[0] === 0x7b ? parseJson(file.toString("utf8")) : undefined;
  if (typeof json !== "object" || json === null || !("format" in json)) return undefined;
  if (json.format !== format) return undefined;
  const { endorsements, vms, without } = json as Partial<EvidenceBundle>;
  if ([endorsements, vms, without].every(Array.isArray)) return json as EvidenceBundle;
  throw notWhole();
}

const notWhole = () => new UserError("The bundle isn't whole");

/** What comes of a bundle; `lines` for a terminal, the verdict first. */
export interface JudgedBundle {
  lines: readonly string[];
  verdict: Verdict;
}

/**
 * Judges each VM again, by the bundle's own clock, endorsements, pins, and policy, which count for as much as whoever signed
 * them: `trusted` are the signers that the reader names. The verdict is the worst of all; a VM without a report could not be
 * verified. Throws for a bundle that isn't whole.
 */
export function judgeBundle(
  bundle: EvidenceBundle,
  roots: TrustedRoots,
  trusted: readonly string[],
): JudgedBundle {
  const judged = bundle.vms.map((one) => ({ ...one, result: resultOf(one, bundle, roots) }));
  const [only, ...others] = judged;
  return only && others.length === 0 && bundle.without.length === 0
    ? bySigner(bundle, trusted, ofOne(only))
    : bySigner(bundle, trusted, ofSeveral(judged, bundle));
}

type Judged = EvidenceBundle["vms"][number] & { result: AttestationResult };

function resultOf(
  { at, report, options, vm, by }: EvidenceBundle["vms"][number],
  bundle: EvidenceBundle,
  roots: TrustedRoots,
): AttestationResult {
  const endorsements = bundle.endorsements[by];
  const isWhole = [report, options, vm, endorsements].every(
    (part) => typeof part === "object" && part !== null,
  );
  if (!isWhole || !endorsements || typeof at !== "number") throw notWhole();
  const verification = verifyEncoded(report.report, restored(endorsements), { now: at, roots });
  return appraiseEvidence(verification, { ...options, now: at });
}

function ofOne({ vm, at, verdict, result }: Judged): JudgedBundle {
  const lines = [
    ...resultLines(result, { at }),
    `  VM                 ${vm.name} (${vm.id})`,
    ...(result.verdict === verdict ? [] : [`Note: the bundle says ${verdict}`]),
  ];
  return { verdict: result.verdict, lines };
}

const worstFirst: readonly Verdict[] = ["failed", "could not verify", "verified"];

function ofSeveral(judged: readonly Judged[], { without }: EvidenceBundle): JudgedBundle {
  const rows: readonly [Verdict, string][] = [
    ...judged.map(({ vm, at, verdict, result }): [Verdict, string] => {
      const said = result.verdict === verdict ? "" : ` (the bundle says ${verdict})`;
      const why = `${result.reasons.map(({ says }) => says).join("; ")}${said}`;
      return [result.verdict, `${vm.name} (${vm.id}), at ${second(at)}: ${why}`];
    }),
    ...without.map(({ vm, why }): [Verdict, string] => [
      "could not verify",
      `${vm.name} (${vm.id}): no report: ${why}`,
    ]),
  ];
  const sorted = worstFirst.flatMap((verdict) => rows.filter(([its]) => its === verdict));
  const counts = worstFirst.flatMap((verdict) => {
    const many = rows.filter(([its]) => its === verdict).length;
    return many === 0 ? [] : [`${many} ${verdict}`];
  });
  const lines = sorted.map(([verdict, text]) => `  ${verdict}: ${text}`);
  return {
    verdict: sorted[0]?.[0] ?? "could not verify",
    lines: [`${rows.length} VMs: ${counts.join(", ")}`, ...lines],
  };
}

/** The judgment as far as its signer is trusted: what the evidence says by itself stands below then. */
function bySigner(
  bundle: EvidenceBundle,
  trusted: readonly string[],
  { lines, verdict }: JudgedBundle,
): JudgedBundle {
  const against = signerProblem(bundle, trusted);
  const { auditHead: head, signedBy = "" } = bundle;
  const notes = head
    ? [`Note: made after record ${head.seq} of the audit trail, ${head.hash}`]
    : [];
  if (!against) {
    const by = `Note: clock, pins, and policy are as signed by the key ${fingerprintOf(signedBy)}, which --signer names`;
    return { verdict, lines: [...lines, by, ...notes] };
  }
  // Evidence that fails needs nobody's word for it
  if (verdict === "failed" && against.verdict !== "failed")
    return { verdict, lines: [...lines, `Note: ${against.says}`, ...notes] };
  const [first = "", ...more] = lines;
  const alone = `By the bundle's own clock, pins, and policy: ${first}`;
  return {
    verdict: against.verdict,
    lines: [`${verdictWords[against.verdict]}: ${against.says}.`, alone, ...more, ...notes],
  };
}

/** Why a bundle must not be believed for what no vendor signs. */
function signerProblem(
  bundle: EvidenceBundle,
  trusted: readonly string[],
): { verdict: "failed" | "could not verify"; says: string } | undefined {
  const { signedBy: key = "", signature } = bundle;
  if (signature === undefined) {
    const says =
      "nobody signed the bundle, so its clock, pins, and policy are as anyone wrote them";
    return { verdict: "could not verify", says };
  }
  if (!isSigned(bundle))
    return { verdict: "failed", says: "the bundle was changed after it was signed" };
  if ([key, fingerprintOf(key), sha256Of(key)].some((name) => trusted.includes(name)))
    return undefined;
  const by = `the bundle is signed by the key ${fingerprintOf(key)}`;
  if (trusted.length > 0)
    return { verdict: "failed", says: `${by}, which is none that --signer names` };
  const says = `${by}, and nobody said whether that is Gatehouse's: name the key that you trust with --signer (\`audit verify\` shows it)`;
  return { verdict: "could not verify", says };
}

function isSigned(bundle: EvidenceBundle): boolean {
  try {
    const [der, signature] = [bundle.signedBy, bundle.signature].map((text = "") =>
      Buffer.from(text, "base64"),
    ) as [Buffer, Buffer];
    const key = createPublicKey({ key: der, type: "spki", format: "der" });
    return verify(null, Buffer.from(signedText(bundle)), key, signature);
  } catch {
    return false;
  }
}

/** A fingerprint as people compare keys, the whole SHA-256, or the key itself; undefined for anything else. */
export function signerNamed(text: string): string | undefined {
  const hex = text.toLowerCase().replaceAll(/[\s:]/g, "");
  if (/^([0-9a-f]{16}|[0-9a-f]{64})$/.test(hex)) return hex;
  const base64 = text.replaceAll(/-----[A-Z ]+-----|\s/g, "");
  // Ed25519, SPKI
  return /^[A-Za-z0-9+/]{58}==?$|^[A-Za-z0-9+/]{59}=$/.test(base64) ? base64 : undefined;
}

const sha256Of = (publicKey: string) =>
  createHash("sha256").update(Buffer.from(publicKey, "base64")).digest("hex");

/** As people compare keys of the audit trail. */
const fingerprintOf = (publicKey: string) => sha256Of(publicKey).slice(0, 16);
