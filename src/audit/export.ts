import type { Keys, RedisClient } from "../redis/redis.ts";
import { UserError } from "../errors.ts";
import { genesis, idBefore, isStreamId, type Seal, readMarker } from "./chain.ts";
import type { SigningKey } from "./anchors.ts";
import { type AuditFilter, fits, parseRecord } from "./read.ts";
import { createTrail, type Trail } from "./trail.ts";
import { createHash } from "node:crypto";
import { z } from "zod";
import { canonical } from "../text/canonical-json.ts";

const exportFormat = "gatehouse-audit-export-1";

/** Part of every export, so that it can be verified without this program. */
const howToVerify = [
  "All hashes are SHA-256, written as 64 hex digits; texts are UTF-8; '' joins without anything between.",
  "1. Go through `records` in order. `before` starts as the `before` of this file: the hash of the seal before the first.",
  "2. payload must be SHA-256 of salt '' record, the record's exact text: printf '%s%s' SALT RECORD | sha256sum",
  "3. hash must be SHA-256 of a zero byte, then before, payload, seq, id and at with one space between:",
  "   printf '\\0%s %s %s %s %s' BEFORE PAYLOAD SEQ ID AT | sha256sum. It is the `before` of the next record.",
  "4. seq grows by one; where it doesn't, records were lost, and a record with what=audit-gap says so; one with what=audit-gap-recorded says who knows of it, and why.",
  "5. Without record and salt (erased, withheld) the payload's hash stands for them; each erased one is named by a later record with what=audit-erased.",
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
  /** Why there is no record: erased for privacy, or omitted by a filter. */
  without: z.enum(["erased", "withheld"]).optional(),
});

const checkpointShape = z.strictObject({
  seq: seqShape,
  hash: hashShape,
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
  from: seqShape,
  to: seqShape,
  filter: z.record(z.string(), z.string()),
  before: hashShape,
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
export type ExportedRecord = z.infer<typeof recordShape>;

export function digestOfExport(file: Omit<AuditExport, "digest" | "signature">): string {
  return createHash("sha256").update(canonical(file)).digest("hex");
}

export function signedExportText(digest: string): string {
  return `gatehouse-audit-export ${digest}`;
}

const pageSize = 1000;

/**
 * The sealed trail as one value. It always reaches the end of the chain, because later records explain erasures and
 * losses, and those are always included. Records that don't fit the filter keep their seals. Signed when there is a key.
 */
export async function exportAudit(options: {
  redis: RedisClient;
  key: Keys;
  filter?: AuditFilter & { from?: number };
  signingKey?: SigningKey | undefined;
}): Promise<AuditExport> {
  const { redis, key, signingKey } = options;
  const { from = 1, ...filter } = options.filter ?? {};
  const trail = createTrail(redis, key);
  const before = from > 1 ? await trail.sealBefore(from) : undefined;
  const records = await readRecords(trail, from, filter);
  const last = records.at(-1);
  const to = last?.seq ?? from - 1;
  const checkpoints = (await trail.checkpoints(from)).filter(({ seq }) => seq <= to);
  const keys = checkpoints.map(({ publicKey }) => publicKey);
  const file: Omit<AuditExport, "digest" | "signature"> = {
    format: exportFormat,
    chain: key.namespace,
    at: await trail.now(),
    from,
    to,
    filter: named(filter),
    before: before?.hash ?? genesis,
    records,
    head: { seq: to, hash: last?.hash ?? before?.hash ?? genesis },
    publicKeys: [...new Set(keys)],
    checkpoints,
    signedBy: signingKey?.publicKey ?? null,
    howToVerify: [...howToVerify],
  };
  const digest = digestOfExport(file);
  const signature = signingKey?.sign(signedExportText(digest));
  return { ...file, digest, ...(signature ? { signature } : {}) };
}

async function readRecords(
  trail: Trail,
  from: number,
  filter: AuditFilter,
): Promise<ExportedRecord[]> {
  const found: ExportedRecord[] = [];
  for (let next = from; ;) {
    const seals = await trail.seals(next, pageSize);
    const [first, last] = [seals[0], seals.at(-1)];
    if (!first || !last) return found;
    if (!isStreamId(first.id) || !isStreamId(last.id)) {
      throw new UserError("The audit trail is broken and can't be exported", "run audit verify");
    }
    const salts = await trail.salts(seals);
    const range = {
      after: found.at(-1)?.id ?? idBefore(first.id),
      last: last.id,
      most: pageSize * 2,
    };
    const entries = await trail.records(range);
    const byId = new Map(entries.map(({ id, record }) => [id, record]));
    for (const seal of seals) {
      found.push(exported(seal, byId.get(seal.id), salts.get(seal.seq), filter));
    }
    next = last.seq + 1;
  }
}

function exported(
  seal: Seal,
  record: string | undefined,
  salt: string | undefined,
  filter: AuditFilter,
): ExportedRecord {
  if (record === undefined) return { ...seal, without: "erased" };
  const isShown = fits(parseRecord({ record }), filter) || readMarker(record) !== undefined;
  if (!isShown) return { ...seal, without: "withheld" };
  return { ...seal, record, ...(salt === undefined ? {} : { salt }) };
}

function named(filter: AuditFilter): Record<string, string> {
  return Object.fromEntries(
    Object.entries(filter).filter((pair): pair is [string, string] => pair[1] !== undefined),
  );
}

/** One record per line. */
export function exportText(file: AuditExport): string {
  const { records, ...rest } = file;
  const lines = records.map((record) => `  ${JSON.stringify(record)}`).join(",\n");
  const around = JSON.stringify({ ...rest, records: [] }, undefined, 1);
  return `${around.replace('"records": []', () => `"records": [\n${lines}\n ]`)}\n`;
}
