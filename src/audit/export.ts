import { createHash } from "node:crypto";
import { z } from "zod";
import type { RedisPlace } from "../redis/redis.ts";
import { canonical } from "../text/canonical-json.ts";
import { parseJson } from "../text/parse-json.ts";
import { isSignature } from "../text/signed-text.ts";
import type { Anchor } from "./anchors.ts";
import type { SigningKey } from "./signing-key.ts";
import type { Seal } from "./seal.ts";
import { Trail } from "./trail.ts";
import { type TrailStep, walk } from "./walk.ts";
import { checkpointShape } from "./checkpoint.ts";
import { cutShape, startOf } from "./cut.ts";
import { type OnVerified, type TrailVerdict, TrailCheck } from "./verify.ts";

const exportFormat = "gatehouse-audit-export-1";

/** A part of every export, so that it can be verified without this program. */
const howToVerify = [
  "All hashes are SHA-256, written as 64 hex digits; texts are UTF-8; '' joins without anything between.",
  "1. Go through `records` in order. `before` starts as the `before` of this file: the hash of the seal before the first.",
  "2. payload must be SHA-256 of salt '' record, the record's exact text: printf '%s%s' SALT RECORD | sha256sum",
  "3. hash must be SHA-256 of a zero byte, then before, payload, seq, id and at with one space between:",
  "   printf '\\0%s %s %s %s %s' BEFORE PAYLOAD SEQ ID AT | sha256sum. It is the `before` of the next record.",
  "4. seq grows by one; where it doesn't, records were lost, and a record with what=audit-gap says so; one with what=audit-gap-recorded says who knows of it, and why.",
  "5. Without record and salt (erased) the payload's hash stands for them; each erased one is named by a later record with what=audit-erased. Where without=redacted, a person was removed: SHA-256 of salt '' record is the payload that the last record with what=audit-redacted about this seq names.",
  "6. `head` must be the last seq and hash. Compare it, and any head posted to the audit channel (seq:hash), with what you find.",
  "7. Each checkpoint's signature is Ed25519 by publicKey (SPKI, base64) over the text: gatehouse-audit-checkpoint CHAIN SEQ HASH AT",
  "8. With `archived`, the records up to its seq are in an older file: its hash is the `before` of this one. Its signature is Ed25519 by publicKey over the text: gatehouse-audit-archived CHAIN SEQ HASH ID AT",
  "9. digest is SHA-256 of this file as canonical JSON (RFC 8785) without digest and signature; signature is Ed25519 by signedBy over: gatehouse-audit-export DIGEST",
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
  /** Why there is no record, or why it isn't the one that was sealed. */
  without: z.enum(["erased", "redacted"]).optional(),
});

const aroundShape = z.strictObject({
  format: z.literal(exportFormat),
  /** The namespace, which is part of what is signed. */
  chain: z.string(),
  /** Redis time of the export (ms). */
  at: z.number(),
  from: z.int().min(1),
  to: seqShape,
  filter: z.record(z.string(), z.string()),
  before: hashShape,
  /** The signed beginning of a trail whose older records were archived. */
  archived: cutShape.optional(),
  records: z.tuple([]),
  head: z.strictObject({ seq: seqShape, hash: hashShape }),
  publicKeys: z.array(z.string()),
  checkpoints: z.array(checkpointShape),
  /** The key of `signature`; null when unsigned. */
  signedBy: z.string().nullable(),
  howToVerify: z.array(z.string()),
  digest: hashShape,
  signature: z.string().optional(),
});

const exportShape = aroundShape.extend({ records: z.array(recordShape) });

/** An export as one value. Gatehouse itself reads and writes the records page by page. */
export type AuditExport = z.infer<typeof exportShape>;
type Around = z.infer<typeof aroundShape>;
type ExportedRecord = z.infer<typeof recordShape>;

const signedText = (digest: string) => `gatehouse-audit-export ${digest}`;

/**
 * The digest of a file whose records come one by one. In canonical JSON the records stand in the
 * middle of the rest, which must be known before them.
 */
function startDigest({ digest: _digest, signature: _signature, ...rest }: Partial<Around>) {
  const [before = "", after = ""] = canonical({ ...rest, records: [] }).split(/(?<="records":\[)/);
  const sum = createHash("sha256").update(before);
  let separator = "";
  return {
    add(record: ExportedRecord): void {
      sum.update(separator + canonical(record));
      separator = ",";
    },
    end: (): string => sum.update(after).digest("hex"),
  };
}

/** An export while it is written. Only `text` reads the records. */
interface OpenExport {
  /** The numbers of the first and the last record. */
  from: number;
  to: number;
  /** How many records were written so far. */
  readonly written: number;
  /** The file in pieces, each a page of records at most. */
  text: AsyncGenerator<string>;
}

/**
 * The sealed trail as a file, with one record per line. It extends to the end of the chain, because
 * later records explain erasures and losses. Signed if there is a key.
 */
export async function exportAudit({
  redis,
  key,
  signingKey,
  page,
}: RedisPlace & {
  signingKey?: SigningKey | undefined;
  page?: number;
}): Promise<OpenExport> {
  const trail = new Trail(redis, key);
  const cut = await trail.cut();
  const start = startOf(cut);
  const last = (await trail.head()) ?? start;
  const checkpoints = (await trail.checkpoints(start.seq + 1)).filter(({ seq }) => seq <= last.seq);
  const around: Omit<Around, "digest" | "signature"> = {
    format: exportFormat,
    chain: key.namespace,
    at: await trail.now(),
    from: start.seq + 1,
    to: last.seq,
    filter: {},
    before: start.hash,
    ...(cut ? { archived: cut } : {}),
    records: [],
    head: { seq: last.seq, hash: last.hash },
    publicKeys: [...new Set(checkpoints.map(({ publicKey }) => publicKey))],
    checkpoints,
    signedBy: signingKey?.publicKey ?? null,
    howToVerify: [...howToVerify],
  };
  let written = 0;
  async function* records(): AsyncGenerator<readonly ExportedRecord[]> {
    for await (const steps of walk(trail, page)) {
      const sealed = steps.flatMap(exported);
      const some = sealed.filter(({ seq }) => seq <= last.seq);
      written += some.length;
      yield some;
      if (sealed.some(({ seq }) => seq >= last.seq)) return;
    }
  }
  return {
    from: around.from,
    to: around.to,
    get written() {
      return written;
    },
    text: writeText(around, records(), signingKey),
  };
}

/** Records that aren't sealed yet are left out. */
function exported({ seal, entry, salt }: TrailStep): ExportedRecord[] {
  if (!seal) return [];
  if (!entry) return [{ ...seal, without: "erased" }];
  if (entry.salt !== undefined)
    return [{ ...seal, salt: entry.salt, record: entry.record, without: "redacted" }];
  return [{ ...seal, record: entry.record, ...(salt === undefined ? {} : { salt }) }];
}

/** Where the records stand in the text. */
const recordsStart = ' "records": [';
const recordsEnd = " ]";

async function* writeText(
  around: Omit<Around, "digest" | "signature">,
  pages: AsyncIterable<readonly ExportedRecord[]>,
  signingKey: SigningKey | undefined,
): AsyncGenerator<string> {
  const sum = startDigest(around);
  const partsOf = (file: object) => JSON.stringify(file, undefined, 1).split(`${recordsStart}]`);
  yield `${partsOf(around)[0]}${recordsStart}\n`;
  let separator = "";
  for await (const records of pages) {
    let lines = "";
    for (const record of records) {
      sum.add(record);
      lines += `${separator}  ${JSON.stringify(record)}`;
      separator = ",\n";
    }
    yield lines;
  }
  const digest = sum.end();
  const signature = signingKey?.sign(signedText(digest));
  const file = { ...around, digest, ...(signature ? { signature } : {}) };
  yield `\n${recordsEnd}${partsOf(file)[1]}\n`;
}

/** The lines of a file, from its beginning each time. */
type ReadLines = () => AsyncIterable<string> | Iterable<string>;

/** A file that was opened: all but its records, which are read page by page. */
interface OpenedExport {
  around: Around;
  pages(): AsyncIterable<readonly ExportedRecord[]> | Iterable<readonly ExportedRecord[]>;
}

/** Whether a file begins as those that Gatehouse writes do, so that its lines can be read. */
export const isExportStart = (text: string): boolean =>
  text.startsWith(`{\n "format": "${exportFormat}",\n`);

/** Verifies an export offline. `json` is the file's text or its parsed value. */
export async function verifyExport(
  json: unknown,
  anchors: readonly Anchor[] = [],
  onVerified?: OnVerified,
): Promise<TrailVerdict> {
  if (typeof json === "string" && isExportStart(json))
    return verifyExportLines(() => json.split("\n"), anchors, onVerified);
  const file = exportShape.safeParse(typeof json === "string" ? parseJson(json) : json).data;
  const opened = file && { around: { ...file, records: [] as [] }, pages: () => [file.records] };
  return verifyOpened(opened, anchors, onVerified);
}

/** Verifies an export line by line, so that it takes the memory of a page. */
export async function verifyExportLines(
  readLines: ReadLines,
  anchors: readonly Anchor[] = [],
  onVerified?: OnVerified,
): Promise<TrailVerdict> {
  const around = await readAround(readLines);
  const opened = around && { around, pages: () => readPages(readLines) };
  try {
    return await verifyOpened(opened, anchors, onVerified);
  } catch (error) {
    if (error instanceof DamagedLine) return verifyOpened(undefined, anchors, onVerified);
    throw error;
  }
}

/** A line among the records that isn't one. */
class DamagedLine extends Error {
  override readonly name = "DamagedLine";
}

async function readAround(readLines: ReadLines): Promise<Around | undefined> {
  let text = "";
  let isWithin = false;
  for await (const line of readLines()) {
    if (isWithin && !line.startsWith(recordsEnd)) continue;
    if (isWithin) text += line.trimStart();
    else text += line === recordsStart ? line : `${line}\n`;
    isWithin = line === recordsStart;
  }
  return aroundShape.safeParse(parseJson(text)).data;
}

const linesPerPage = 1000;

async function* readPages(readLines: ReadLines): AsyncGenerator<readonly ExportedRecord[]> {
  let page: ExportedRecord[] = [];
  let isWithin = false;
  let isLast = false;
  for await (const line of readLines()) {
    if (!isWithin) {
      isWithin = line === recordsStart;
      continue;
    }
    if (line.startsWith(`${recordsEnd},`) || line === recordsEnd) break;
    // A file without any record has an empty line there.
    if (line === "") isLast = true;
    else {
      if (isLast) throw new DamagedLine();
      isLast = !line.endsWith(",");
      page.push(parseLine(isLast ? line : line.slice(0, -1)));
    }
    if (page.length < linesPerPage) continue;
    yield page;
    page = [];
  }
  if (!isLast) throw new DamagedLine();
  yield page;
}

function parseLine(line: string): ExportedRecord {
  const record = recordShape.safeParse(parseJson(line)).data;
  if (!record) throw new DamagedLine();
  return record;
}

async function verifyOpened(
  file: OpenedExport | undefined,
  anchors: readonly Anchor[],
  onVerified: OnVerified | undefined,
): Promise<TrailVerdict> {
  const around = file?.around;
  const sum = startDigest(around ?? {});
  const check = new TrailCheck({
    chain: around?.chain ?? "",
    cut: around?.archived,
    anchors: around ? anchors : [],
    checkpoints: around?.checkpoints ?? [],
    lastGiven: { seq: around?.to ?? 0 },
    now: 0,
    onVerified,
  });
  let last = startOf(around?.archived);
  for await (const records of file?.pages() ?? []) {
    for (const record of records) sum.add(record);
    last = records.at(-1) ?? last;
    check.visit(records.map(stepOf));
  }
  const verdict = check.verdict();
  const sentence = around
    ? faultOf(around, last, sum.end())
    : "this isn't an audit export, or it is damaged";
  if (verdict.problem || sentence === undefined) return verdict;
  const problem = { seq: around ? 1 : 0, kind: "file", sentence } as const;
  return { ...verdict, standing: "broken", problem, problems: [problem] };
}

function stepOf({ record, salt, without, ...seal }: ExportedRecord): TrailStep {
  const { id, at } = seal;
  if (without === "redacted" && record !== undefined)
    return { seal, entry: { id, at, record, salt: salt ?? "" } };
  return { seal, entry: record === undefined ? undefined : { id, at, record }, salt };
}

/** Finds the first fault in the parts of an export outside its records. */
function faultOf(
  { digest, signature, signedBy, ...file }: Around,
  last: Pick<Seal, "seq" | "hash">,
  sum: string,
): string | undefined {
  const start = startOf(file.archived);
  if (file.from !== start.seq + 1 || file.before !== start.hash)
    return "its beginning is not the one that was signed";
  const isHead = file.head.seq === last.seq && file.head.hash === last.hash && file.to === last.seq;
  if (!isHead) return "the head is not the end of its records";
  if (sum !== digest) return "the file was changed";
  if (signedBy === null && signature === undefined) return undefined;
  const isRight = isSignature(signedText(digest), signedBy ?? "", signature ?? "");
  return isRight ? undefined : "the file's signature is wrong";
}
