import type { Keys, RedisClient } from "../redis/redis.ts";
import { parseJson } from "../text/parse-json.ts";
import { type Entry, createTrail } from "./trail.ts";

export interface AuditFilter {
  targetId?: string;
  requestId?: string;
  /** A user id: what they did, and what was done for them. */
  who?: string;
}

export interface AuditEntry {
  id: string;
  /** Redis time, ms. */
  at: number;
  record: Readonly<Record<string, unknown>>;
}

export interface AuditPage {
  /** Newest first. */
  entries: readonly AuditEntry[];
  /** There may be older ones. */
  isMore?: boolean;
}

const pageSize = 500;
/** Most records read per query: about a quarter of a second. */
const scanMost = 50_000;

/** The newest records that fit, at most `most`, among the last 50,000. Doesn't verify: most of the trail stays unread. */
export async function readAudit(
  options: { redis: RedisClient; key: Keys; most: number } & AuditFilter,
): Promise<AuditPage> {
  const { redis, key, most } = options;
  const trail = createTrail(redis, key);
  const entries: AuditEntry[] = [];
  let before: string | undefined;
  for (let scanned = 0; scanned < scanMost; scanned += pageSize) {
    const page = await trail.recordsBefore(before, pageSize);
    for (const entry of page) {
      const record = parseRecord(entry);
      if (!fits(record, options)) continue;
      entries.push({ id: entry.id, at: Number(entry.at), record });
      if (entries.length === most) return { entries, isMore: true };
    }
    if (page.length < pageSize) return { entries };
    before = page.at(-1)?.id;
  }
  return { entries, isMore: true };
}

/** A record that is no longer JSON is shown as it is. */
export function parseRecord({ record }: Pick<Entry, "record">): Readonly<Record<string, unknown>> {
  const parsed = parseJson(record);
  if (typeof parsed === "object" && parsed !== null) return { ...parsed };
  return { what: "unreadable", why: record };
}

/** Whether a record fits every given filter. */
function fits(record: Readonly<Record<string, unknown>>, filter: AuditFilter): boolean {
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
