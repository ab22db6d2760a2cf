import { createHash } from "node:crypto";
import { z } from "zod";
import { canonical } from "../canonical.ts";

export const exportFormat = "gatehouse-audit-export-1";

/** What goes into every export, so that it can be verified without this program. */
export const howToVerify = [
  "All hashes are SHA-256, written as 64 hex digits; texts are UTF-8; '' joins without anything between.",
  "1. Go through `records` in order. `before` starts as the `before` of this file: the hash of the seal before the first.",
  "2. payload must be SHA-256 of salt '' record, the record's exact text: printf '%s%s' SALT RECORD | sha256sum",
  "3. hash must be SHA-256 of a zero byte, then before, payload, seq, id and at with one space between:",
  "   printf '\\0%s %s %s %s %s' BEFORE PAYLOAD SEQ ID AT | sha256sum. It is the `before` of the next record.",
  "4. seq grows by one; where it doesn't, records were lost, and a record with what=audit-gap says so.",
  "5. Without record and salt (erased, withheld) the payload's hash stands for them; each erased one is named by a later record with what=audit-erased.",
  "6. `head` must be the last seq and hash. Compare it, and any head posted to the audit channel (seq:hash), with what you find.",
  "7. Each checkpoint's signature is Ed25519 by publicKey (SPKI, base64) over the text: gatehouse-audit-checkpoint CHAIN SEQ HASH AT",
  "8. digest is SHA-256 of this file as canonical JSON (RFC 8785) without digest and signature; signature is Ed25519 by signedBy over: gatehouse-audit-export DIGEST",
] as const;

const hash = z.string().regex(/^[0-9a-f]{64}$/);
const seq = z.int().min(0);

const recordShape = z.strictObject({
  seq,
  id: z.string(),
  at: z.string(),
  payload: hash,
  hash,
  salt: z.string().optional(),
  record: z.string().optional(),
  /** Why there is no record: erased for privacy, or left out of a filtered export. */
  without: z.enum(["erased", "withheld"]).optional(),
});

const checkpointShape = z.strictObject({
  seq,
  hash,
  at: z.number(),
  publicKey: z.string(),
  signature: z.string(),
});

export const exportShape = z.strictObject({
  format: z.literal(exportFormat),
  /** The namespace: part of what is signed. */
  chain: z.string(),
  /** Redis time of the export, ms. */
  at: z.number(),
  from: seq,
  to: seq,
  filter: z.record(z.string(), z.string()),
  before: hash,
  records: z.array(recordShape),
  head: z.strictObject({ seq, hash }),
  publicKeys: z.array(z.string()),
  checkpoints: z.array(checkpointShape),
  /** The key of `signature`; null when nobody signed. */
  signedBy: z.string().nullable(),
  howToVerify: z.array(z.string()),
  digest: hash,
  signature: z.string().optional(),
});

export type AuditExport = z.infer<typeof exportShape>;
export type ExportedRecord = z.infer<typeof recordShape>;

export function digestOfExport(file: Omit<AuditExport, "digest" | "signature">): string {
  return createHash("sha256").update(canonical(file)).digest("hex");
}

export function signedExportText(digest: string): string {
  return `gatehouse-audit-export ${digest}`;
}
