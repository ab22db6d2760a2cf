import { createHash } from "node:crypto";
import { z } from "zod";
import { counted } from "../messages/markdown.ts";
import type { RedisPlace } from "../redis/redis.ts";
import { canonical } from "../text/canonical-json.ts";
import { parseJson } from "../text/parse-json.ts";
import { fingerprint, isSignature } from "../text/signed-text.ts";
import { signHead } from "./sealer.ts";
import type { SigningKey } from "./signing-key.ts";
import { type Seal, hashOf, isHash, isSealedBy, isStreamId } from "./seal.ts";
import { Trail } from "./trail.ts";
import { sealsOf } from "./walk.ts";
import { type OnVerified, type TrailVerdict, range } from "./verify.ts";

const excerptFormat = "gatehouse-audit-excerpt-1";

/** A part of every excerpt, so that it can be verified without this program. */
const howToVerify = [
  "This is an excerpt: it doesn't show that nothing is missing between its acts. Compare it with the whole trail: node gatehouse.mjs audit verify FILE, with REDIS_URL or with --against EXPORT.",
  "All hashes are SHA-256, written as 64 hex digits; texts are UTF-8; '' joins without anything between.",
  "1. payload must be SHA-256 of salt '' record, the record's exact text: printf '%s%s' SALT RECORD | sha256sum",
  "2. hash must be SHA-256 of a zero byte, then before, payload, seq, id and at with one space between:",
  "   printf '\\0%s %s %s %s %s' BEFORE PAYLOAD SEQ ID AT | sha256sum",
  "3. In an export of the whole trail that verifies, the record with this seq must have the same hash.",
  "4. What an act says is Gatehouse's reading of its records. digest is SHA-256 of this file as canonical JSON (RFC 8785) without digest and signature; signature is Ed25519 by signedBy (SPKI, base64) over: gatehouse-audit-excerpt DIGEST. A checkpoint of the export must be signed by the same key.",
] as const;

const hash = z.string().refine(isHash);

const recordShape = z.strictObject({
  seq: z.int().min(1),
  id: z.string().refine(isStreamId),
  at: z.string(),
  /** The hash of the seal before. */
  before: hash,
  payload: hash,
  hash,
  salt: z.string(),
  record: z.string(),
});

const excerptShape = z.strictObject({
  format: z.literal(excerptFormat),
  /** The namespace. */
  chain: z.string(),
  /** Redis time of the excerpt (ms). */
  at: z.number(),
  /** What it is about, in words. */
  about: z.string(),
  acts: z.array(
    z.strictObject({
      /** When the act began, ISO 8601. */
      at: z.string(),
      says: z.string(),
      records: z.array(recordShape).min(1),
    }),
  ),
  /** The key of `signature`; null when unsigned. */
  signedBy: z.string().nullable(),
  howToVerify: z.array(z.string()),
  digest: hash,
  signature: z.string().optional(),
});

export type AuditExcerpt = z.infer<typeof excerptShape>;
type ExcerptRecord = z.infer<typeof recordShape>;

/** An act in words, and the records of the trail that tell of it. */
export interface Act {
  /** When it began (ms). */
  at: number;
  says: string;
  /** IDs of records. */
  records: readonly string[];
}

const digestOf = (file: Omit<AuditExcerpt, "digest" | "signature">) =>
  createHash("sha256").update(canonical(file)).digest("hex");

const signedText = (digest: string) => `gatehouse-audit-excerpt ${digest}`;

/**
 * These acts with their records, each with its seal. It contains no other record, and nothing of
 * other records but hashes. An act of which no record is left as it was sealed is left out. Undefined while one of the records isn't sealed, or the key has signed no
 * head of this trail: its words could not be proven.
 */
export async function exportExcerpt({
  redis,
  key,
  signingKey,
  about,
  acts,
}: RedisPlace & {
  signingKey?: SigningKey | undefined;
  about: string;
  acts: readonly Act[];
}): Promise<AuditExcerpt | undefined> {
  const trail = new Trail(redis, key);
  if (signingKey && !(await hasSigned(trail, signingKey))) return undefined;
  const ids = [...new Set(acts.flatMap(({ records }) => records))];
  const sealed = await sealsOf(trail, ids);
  const records = new Map<string, ExcerptRecord>();
  for (const id of ids) {
    const sealedRecord = sealed.get(id);
    const entry = await trail.entry(id);
    // An erased record proves nothing any more, and one without a person not what was said then.
    if (sealedRecord && (!entry || entry.salt !== undefined)) continue;
    if (!sealedRecord?.salt || !entry) return undefined;
    const { seal, before, salt } = sealedRecord;
    const { seq, at, payload, hash: itsHash } = seal;
    records.set(id, { seq, id, at, before, payload, hash: itsHash, salt, record: entry.record });
  }
  const file: Omit<AuditExcerpt, "digest" | "signature"> = {
    format: excerptFormat,
    chain: key.namespace,
    at: await trail.now(),
    about,
    acts: acts
      .map((act) => ({
        at: new Date(act.at).toISOString(),
        says: act.says,
        records: act.records.flatMap((id) => records.get(id) ?? []),
      }))
      .filter((act) => act.records.length > 0),
    signedBy: signingKey?.publicKey ?? null,
    howToVerify: [...howToVerify],
  };
  const digest = digestOf(file);
  const signature = signingKey?.sign(signedText(digest));
  return { ...file, digest, ...(signature ? { signature } : {}) };
}

/** Whether the key has signed a head, which it does now if it hasn't. Of several gateways one signs. */
async function hasSigned(trail: Trail, key: SigningKey): Promise<boolean> {
  const signed = await trail.checkpoints(1);
  if (signed.some(({ publicKey }) => publicKey === key.publicKey)) return true;
  const head = await trail.head();
  return head !== undefined && signHead(trail, key, head);
}

export const excerptText = (file: AuditExcerpt): string =>
  `${JSON.stringify(file, undefined, 1)}\n`;

/** Whether this is an excerpt, intact or not, and no export of the whole trail. */
export function isExcerpt(text: string): boolean {
  return z.looseObject({ format: z.literal(excerptFormat) }).safeParse(parseJson(text)).success;
}

interface ActVerdict {
  at: string;
  sentence: string;
  /** The numbers of its records. */
  seqs: readonly number[];
  standing: "proven" | "broken" | "unsure";
  /** Why it isn't proven. */
  why?: string | undefined;
}

/**
 * The result of comparing an excerpt with the whole trail. `proven`: each record stands in the trail
 * as it was sealed, and the words are signed by a key of that trail.
 */
export interface ExcerptVerdict {
  standing: "proven" | "broken" | "unsure";
  about: string;
  acts: readonly ActVerdict[];
  /** What is wrong with the file as a whole. */
  fault?: string | undefined;
  /** Fingerprint of the key that signed the words and a head of the trail. */
  signedBy?: string | undefined;
  /** How many of its records were erased from the trail since. */
  erasedSince: number;
  whole: TrailVerdict;
}

/**
 * Compares an excerpt with the whole trail, which `verifyWhole` reads. A record is proven by a seal
 * that the whole trail has in its place, before the first break.
 */
export async function verifyExcerpt(
  text: string,
  verifyWhole: (onVerified: OnVerified) => Promise<TrailVerdict>,
): Promise<ExcerptVerdict> {
  const file = excerptShape.safeParse(parseJson(text)).data;
  const named = new Set(file?.acts.flatMap(({ records }) => records.map(({ seq }) => seq)));
  const seals = new Map<number, { hash: string; isErased: boolean }>();
  const whole = await verifyWhole((seal: Seal, isErased) => {
    if (named.has(seal.seq)) seals.set(seal.seq, { hash: seal.hash, isErased });
  });
  if (!file) {
    const fault = "this isn't an excerpt of the audit trail, or it is damaged";
    return { standing: "broken", about: "", acts: [], fault, erasedSince: 0, whole };
  }
  const acts = file.acts.map(({ at, says, records }): ActVerdict => {
    const verdicts = records.map((record) => judgeRecord(record, seals.get(record.seq), whole));
    const worst =
      verdicts.find((judged) => judged.standing === "broken") ??
      verdicts.find((judged) => judged.standing === "unsure");
    return {
      at,
      sentence: says,
      seqs: records.map(({ seq }) => seq),
      ...(worst ?? { standing: "proven" }),
    };
  });
  const fault = faultOf(file);
  const isOfTrail =
    file.signedBy !== null && whole.signed.keys.includes(fingerprint(file.signedBy));
  const isBroken = fault !== undefined || acts.some((act) => act.standing === "broken");
  const isUnsure = !isOfTrail || acts.some((act) => act.standing === "unsure");
  return {
    standing: isBroken ? "broken" : isUnsure ? "unsure" : "proven",
    about: file.about,
    acts,
    fault,
    signedBy: isOfTrail && file.signedBy !== null ? fingerprint(file.signedBy) : undefined,
    erasedSince: [...seals.values()].filter(({ isErased }) => isErased).length,
    whole,
  };
}

function judgeRecord(
  { before, salt, record, ...seal }: ExcerptRecord,
  trailSeal: { hash: string } | undefined,
  whole: TrailVerdict,
): Pick<ActVerdict, "standing" | "why"> {
  const { seq, id, at } = seal;
  if (!isSealedBy({ id, at, record }, seal, salt) || hashOf(before, seal) !== seal.hash)
    return { standing: "broken", why: `record ${seq} is not the one that was sealed` };
  if (trailSeal)
    return trailSeal.hash === seal.hash
      ? { standing: "proven" }
      : { standing: "broken", why: `the trail has another record ${seq}` };
  const reached = whole.head?.seq ?? 0;
  const why =
    seq > reached
      ? `the trail that it was compared with ends before record ${seq}`
      : `the trail can't be verified up to record ${seq}`;
  return { standing: "unsure", why };
}

function faultOf({ digest, signature, ...rest }: AuditExcerpt): string | undefined {
  if (digestOf(rest) !== digest) return "the file was changed";
  if (rest.signedBy === null && signature === undefined) return undefined;
  const isRight = isSignature(signedText(digest), rest.signedBy ?? "", signature ?? "");
  return isRight ? undefined : "the file's signature is wrong";
}

/** Plain sentences, the most important first, then a line for each act. */
export function excerptLines(verdict: ExcerptVerdict): string[] {
  const { standing, acts, fault, signedBy, erasedSince, about } = verdict;
  const proven = acts.filter((act) => act.standing === "proven");
  const records = new Set(acts.flatMap(({ seqs }) => seqs)).size;
  const first =
    fault === undefined
      ? `Proven: ${proven.length} of ${counted(acts.length, "act")}${standing === "proven" ? `, by ${counted(records, "record")} that the trail has as they were sealed` : ""}.`
      : `The excerpt is worthless: ${fault}.`;
  const words =
    signedBy === undefined
      ? "The words of the acts are not proven: no head of this trail is signed by the file's key."
      : `The words of the acts are signed by ${signedBy}, which signed heads of this trail, too.`;
  return [
    ...(about === "" ? [] : [about]),
    first,
    ...(fault === undefined ? [words] : []),
    ...(erasedSince > 0 ? [`${erasedSince} of its records were erased from the trail since.`] : []),
    ...(fault === undefined ? acts.map(actLine) : []),
    "An excerpt doesn't show that nothing is missing between its acts. The whole trail:",
  ];
}

function actLine({ at, sentence, seqs, standing, why }: ActVerdict): string {
  const sign = { proven: "✓", broken: "✗", unsure: "?" }[standing];
  return `${sign} ${at} ${sentence} (${listRecords(seqs)})${why === undefined ? "" : `: ${why}`}`;
}

/** `record 12`, `records 12 to 15, 19`. */
function listRecords(seqs: readonly number[]): string {
  const runs: { from: number; to: number }[] = [];
  for (const seq of [...new Set(seqs)].toSorted((a, b) => a - b)) {
    const last = runs.at(-1);
    if (last && last.to + 1 === seq) last.to = seq;
    else runs.push({ from: seq, to: seq });
  }
  const noun = seqs.length === 1 ? "record" : "records";
  return `${noun} ${runs.map(({ from, to }) => range(from, to)).join(", ")}`;
}
