import { createHash } from "node:crypto";
import { z } from "zod";
import { canonical } from "../text/canonical-json.ts";
import { parseJson } from "../text/parse-json.ts";
import { isSignature } from "../text/signed-text.ts";
import type { Anchor } from "./anchors.ts";
import type { SigningKey } from "./signing-key.ts";
import { type TrailStep, type Trail, checkpointShape, createTrail, genesis } from "./trail.ts";
import { type OnVerified, type TrailVerdict, checkWalk } from "./verify.ts";

const exportFormat = "gatehouse-audit-export-1";

/** A part of every export, so that it can be verified without this program. */
const howToVerify = [
  "All hashes are SHA-256, written as 64 hex digits; texts are UTF-8; '' joins without anything between.",
  "1. Go through `records` in order. `before` starts as the `before` of this file: the hash of the seal before the first.",
  "2. payload must be SHA-256 of salt '' record, the record's exact text: printf '%s%s' SALT RECORD | sha256sum",
  "3. hash must be SHA-256 of a zero byte, then before, payload, seq, id and at with one space between:",
  "   printf '\\0%s %s %s %s %s' BEFORE PAYLOAD SEQ ID AT | sha256sum. It is the `before` of the next record.",
  "4. seq grows by one; where it doesn't, records were lost, and a record with what=audit-gap says so; one with what=audit-gap-recorded says who knows of it, and why.",
  "5. Without record and salt (erased) the payload's hash stands for them; each erased one is named by a later record with what=audit-erased.",
  "6. `head` must be the last seq and hash. Compare it, and any head posted to the audit channel (seq:hash), with what you find.",
  "7. Each checkpoint's signature is Ed25519 by publicKey (SPKI, base64) over the text: gatehouse-audit-checkpoint CHAIN SEQ HASH AT",
  "8. digest is SHA-256 of this file as canonical JSON (RFC 8785) without digest and signature; signature is Ed25519 by signedBy over: gatehouse-audit-export DIGEST",
] as const;

const hashShape = z.string().regex(/^[0-9a-f]{64}$/);
const seqShape = z.int().min(0);

const recordShape = z.strictObject({
  seq: seqShape,
  id: z.string(),
  at: z.string(),
  payload: hashShape,
  hash: hashShape,
  salt: z.string().optional(),
  record: z.string().optional(),
  /** Why there is no record. */
  without: z.literal("erased").optional(),
});

const exportShape = z.strictObject({
  format: z.literal(exportFormat),
  /** The namespace, which is part of what is signed. */
  chain: z.string(),
  /** Redis time of the export (ms). */
  at: z.number(),
  from: z.literal(1),
  to: seqShape,
  filter: z.record(z.string(), z.string()),
  before: z.literal(genesis),
  records: z.array(recordShape),
  head: z.strictObject({ seq: seqShape, hash: hashShape }),
  publicKeys: z.array(z.string()),
  checkpoints: z.array(checkpointShape),
  /** The key of `signature`; null when unsigned. */
  signedBy: z.string().nullable(),
  howToVerify: z.array(z.string()),
  digest: hashShape,
  signature: z.string().optional(),
});

export type AuditExport = z.infer<typeof exportShape>;
type ExportedRecord = z.infer<typeof recordShape>;

function digestOf(file: Omit<AuditExport, "digest" | "signature">): string {
  return createHash("sha256").update(canonical(file)).digest("hex");
}

const signedText = (digest: string) => `gatehouse-audit-export ${digest}`;

/**
 * The sealed trail as one value. It extends to the end of the chain, because later records explain
 * erasures and losses. Signed if there is a key.
 */
export async function exportAudit({
  redis,
  key,
  signingKey,
}: Pick<Trail, "redis" | "key"> & { signingKey?: SigningKey | undefined }): Promise<AuditExport> {
  const trail = createTrail(redis, key);
  const records: ExportedRecord[] = [];
  for await (const page of trail.walk()) records.push(...page.flatMap(exported));
  const last = records.at(-1);
  const to = last?.seq ?? 0;
  const checkpoints = (await trail.checkpoints(1)).filter(({ seq }) => seq <= to);
  const file: Omit<AuditExport, "digest" | "signature"> = {
    format: exportFormat,
    chain: key.namespace,
    at: await trail.now(),
    from: 1,
    to,
    filter: {},
    before: genesis,
    records,
    head: { seq: to, hash: last?.hash ?? genesis },
    publicKeys: [...new Set(checkpoints.map(({ publicKey }) => publicKey))],
    checkpoints,
    signedBy: signingKey?.publicKey ?? null,
    howToVerify: [...howToVerify],
  };
  const digest = digestOf(file);
  const signature = signingKey?.sign(signedText(digest));
  return { ...file, digest, ...(signature ? { signature } : {}) };
}

/** Records that aren't sealed yet are left out. */
function exported({ seal, entry, salt }: TrailStep): ExportedRecord[] {
  if (!seal) return [];
  if (!entry) return [{ ...seal, without: "erased" }];
  return [{ ...seal, record: entry.record, ...(salt === undefined ? {} : { salt }) }];
}

/** The file as text, with one record per line. */
export function exportText(file: AuditExport): string {
  const { records, ...rest } = file;
  const lines = records.map((record) => `  ${JSON.stringify(record)}`).join(",\n");
  const around = JSON.stringify({ ...rest, records: [] }, undefined, 1);
  return `${around.replace('"records": []', () => `"records": [\n${lines}\n ]`)}\n`;
}

/** Verifies an export offline. `json` is the file's text or its parsed value. */
export async function verifyExport(
  json: unknown,
  anchors: readonly Anchor[] = [],
  onVerified?: OnVerified,
): Promise<TrailVerdict> {
  const file = exportShape.safeParse(typeof json === "string" ? parseJson(json) : json).data;
  const found = await checkWalk([file?.records.map(stepOf) ?? []], {
    chain: file?.chain ?? "",
    anchors: file ? anchors : [],
    checkpoints: file?.checkpoints ?? [],
    given: { seq: file?.to ?? 0 },
    now: 0,
    onVerified,
  });
  const says = file ? faultOf(file) : "this isn't an audit export, or it is damaged";
  if (found.problem || says === undefined) return found;
  const problem = { seq: file ? 1 : 0, kind: "file", says } as const;
  return { ...found, is: "broken", problem, problems: [problem] };
}

function stepOf({ record, salt, ...seal }: ExportedRecord): TrailStep {
  const { id, at } = seal;
  return { seal, entry: record === undefined ? undefined : { id, at, record }, salt };
}

/** Finds the first fault in the parts of an export outside its records. */
function faultOf(file: AuditExport): string | undefined {
  const { digest, signature, ...rest } = file;
  const { signedBy } = file;
  const last = file.records.at(-1) ?? { seq: 0, hash: genesis };
  const isHead = file.head.seq === last.seq && file.head.hash === last.hash && file.to === last.seq;
  if (!isHead) return "the head is not the end of its records";
  if (digestOf(rest) !== digest) return "the file was changed";
  if (signedBy === null && signature === undefined) return undefined;
  const isRight = isSignature(signedText(digest), signedBy ?? "", signature ?? "");
  return isRight ? undefined : "the file's signature is wrong";
}
