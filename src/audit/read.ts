import type { Keys, RedisClient } from "../redis.ts";
import { type Entry, isStreamId } from "./chain.ts";
import { createTrail } from "./trail.ts";

export interface AuditFilter {
  targetId?: string;
  requestId?: string;
  /** A user id: what they did, and what was done for them. */
  who?: string;
}

/** A record as it is shown. */
export interface AuditEntry {
  id: string;
  /** Redis time, ms. */
  at: number;
  record: Readonly<Record<string, unknown>>;
}

export interface AuditPage {
  /** Newest first. */
  entries: readonly AuditEntry[];
  /** Where to go on, when there may be more. */
  before?: string;
}

const pageSize = 500;
/** How many records one question may look at: about a quarter of a second. */
const scanMost = 50_000;

/**
 * The newest records that fit, at most `most`. It reads the trail backwards and gives up after 50,000 records; `before` then
 * says where to go on. It reads, it doesn't verify.
 */
export async function readAudit(
  options: { redis: RedisClient; key: Keys; most: number; before?: string } & AuditFilter,
): Promise<AuditPage> {
  const { redis, key, most } = options;
  const trail = createTrail(redis, key);
  const entries: AuditEntry[] = [];
  let before = options.before && isStreamId(options.before) ? options.before : undefined;
  for (let scanned = 0; scanned < scanMost; scanned += pageSize) {
    const page = await trail.recordsBefore(before, pageSize);
    for (const entry of page) {
      const record = parseRecord(entry);
      before = entry.id;
      if (!fits(record, options)) continue;
      entries.push({ id: entry.id, at: Number(entry.at), record });
      if (entries.length === most) return { entries, before };
    }
    if (page.length < pageSize) return { entries };
  }
  return { entries, ...(before ? { before } : {}) };
}

/** A record that was tampered with until it is no JSON is shown as it is. */
export function parseRecord({ record }: Pick<Entry, "record">): Readonly<Record<string, unknown>> {
  try {
    const parsed: unknown = JSON.parse(record);
    if (typeof parsed === "object" && parsed !== null) return { ...parsed };
  } catch {
    // falls through
  }
  return { what: "unreadable", why: record };
}

/** Whether a record is about what is asked for. All that is given must fit. Pure. */
export function fits(record: Readonly<Record<string, unknown>>, filter: AuditFilter): boolean {
  const { targetId, requestId, who } = filter;
  if (requestId !== undefined && record["request"] !== requestId) return false;
  if (who !== undefined && record["who"] !== who && record["requester"] !== who) return false;
  return targetId === undefined || targetIdsOf(record).includes(targetId);
}

function targetIdsOf(record: Readonly<Record<string, unknown>>): readonly unknown[] {
  const { target, targets } = record;
  const one: unknown =
    typeof target === "object" && target !== null && "id" in target ? target.id : target;
  return [one, ...(Array.isArray(targets) ? (targets as unknown[]) : [])];
}
