import type { Keys, RedisClient } from "../redis.ts";
import { UserError } from "../errors.ts";
import { genesis, isStreamId, type Seal } from "./chain.ts";
import type { SigningKey } from "./checkpoint.ts";
import {
  type AuditExport,
  digestOfExport,
  exportFormat,
  type ExportedRecord,
  howToVerify,
  signedExportText,
} from "./export-shape.ts";
import { readMarker } from "./markers.ts";
import { type AuditFilter, fits, parseRecord } from "./read.ts";
import { createTrail, type Trail } from "./trail.ts";

/** Which records an export holds. Those that don't fit keep their seals, so that the chain can be followed. */
export type ExportFilter = AuditFilter & { from?: number };

const pageSize = 1000;

/**
 * The sealed trail as one value to be written as JSON. It always goes on to the end of the chain, because erasures and
 * losses are explained by later records, and those are always in it. Signed when there is a key.
 */
export async function exportAudit(options: {
  redis: RedisClient;
  key: Keys;
  filter?: ExportFilter;
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
      after: found.at(-1)?.id ?? beforeFirst(first),
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

/** Some id that is surely older. */
function beforeFirst({ id }: Seal): string {
  return `${Number(id.split("-")[0]) - 1}-0`;
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

/** One record per line: readable, and every line can be found again. */
export function exportText(file: AuditExport): string {
  const { records, ...rest } = file;
  const lines = records.map((record) => `  ${JSON.stringify(record)}`).join(",\n");
  const around = JSON.stringify({ ...rest, records: [] }, undefined, 1);
  return `${around.replace('"records": []', () => `"records": [\n${lines}\n ]`)}\n`;
}
