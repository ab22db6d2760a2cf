import type { RedisPlace } from "../redis/redis.ts";
import { fold } from "../text/fold.ts";
import { parseJson } from "../text/parse-json.ts";
import type { TrailEntry } from "./seal.ts";
import { type AuditRecord, Trail } from "./trail.ts";
import { newestPages } from "./walk.ts";

export interface AuditFilter {
  targetId?: string;
  /**
   * Used in addition to `targetId`: the target's name when it was recorded. Something that is gone
   * is known only by its name.
   */
  targetName?: string;
  /** The ID of a request, with its safety snapshot, or of a rollout, with its requests. */
  act?: string;
  /** A user ID: what they did, and what was done for them. */
  who?: string;
  /** Kinds of records. */
  recordKinds?: readonly string[];
  /** Records at or before this time aren't read (Redis time, ms). */
  after?: number;
  /** The ID of a record: only older ones are read. */
  before?: string;
}

export interface AuditEntry {
  id: string;
  /** Redis time (ms). */
  at: number;
  record: AuditRecord;
}

interface AuditPage {
  /** Newest first. */
  entries: readonly AuditEntry[];
  /** True when there may be older ones. */
  isMore?: boolean;
}

const readPage = 500;
/** The most records that a query reads, which takes about a quarter of a second. */
const readMost = 50_000;

/**
 * The newest records that match, at most `most`, among the last 50,000. They aren't verified,
 * because most of the trail isn't read.
 */
export async function readAudit(
  options: RedisPlace & { most: number } & AuditFilter,
): Promise<AuditPage> {
  const { most, after, before } = options;
  const entries: AuditEntry[] = [];
  let read = 0;
  for await (const page of newestPages(new Trail(options.redis, options.key), before, readPage)) {
    for (const entry of page) {
      if (after !== undefined && Number(entry.at) <= after) return { entries };
      const record = parseRecord(entry);
      if (!fits(record, options)) continue;
      entries.push({ id: entry.id, at: Number(entry.at), record });
      if (entries.length === most) return { entries, isMore: true };
    }
    read += page.length;
    if (read >= readMost) return { entries, isMore: true };
  }
  return { entries };
}

/** A record that is no longer JSON is shown as it is. */
export function parseRecord({ record }: Pick<TrailEntry, "record">): AuditRecord {
  const parsed = parseJson(record);
  if (typeof parsed === "object" && parsed !== null) return { ...parsed };
  return { what: "unreadable", why: record };
}

/** Whether a record matches every given filter. */
function fits(record: AuditRecord, filter: AuditFilter): boolean {
  const { targetId, targetName, act, who, recordKinds } = filter;
  if (recordKinds !== undefined && !recordKinds.includes(String(record["what"]))) return false;
  if (act !== undefined && record["request"] !== act && actIdIn(record) !== act) return false;
  if (who !== undefined && record["who"] !== who && record["requester"] !== who) return false;
  if (targetId === undefined) return true;
  const { target } = record;
  const isCalled =
    targetName !== undefined &&
    typeof target === "object" &&
    target !== null &&
    "name" in target &&
    typeof target.name === "string" &&
    fold(target.name) === fold(targetName);
  return isCalled || targetIdsOf(record).includes(targetId);
}

/**
 * The act that a record belongs to: the request, the rollout that made it, the request that its
 * snapshot saves, an alert, or a proposal. Undefined for a record that stands alone.
 */
export function actIdIn(record: AuditEntry["record"]): string | undefined {
  const { origin } = record;
  if (typeof origin === "object" && origin !== null && "kind" in origin) {
    if (origin.kind === "rollout" && "rollout" in origin) return String(origin.rollout);
    if (origin.kind === "safety" && "request" in origin) return String(origin.request);
  }
  const { roll, request, alert, proposal } = record;
  return [roll, request, alert, proposal].find((id) => typeof id === "string");
}

/** The user IDs in the last 50,000 records, those in the newest records first. */
export async function peopleInTrail({ redis, key }: RedisPlace): Promise<readonly string[]> {
  const ids = new Set<string>();
  let read = 0;
  for await (const page of newestPages(new Trail(redis, key), undefined, readPage)) {
    for (const { who, requester } of page.map(parseRecord))
      for (const id of [who, requester])
        if (typeof id === "string" && /^[UW][A-Z0-9]{2,}$/.test(id)) ids.add(id);
    read += page.length;
    if (read >= readMost) break;
  }
  return [...ids];
}

function targetIdsOf(record: AuditRecord): readonly unknown[] {
  const { target, targets } = record;
  const targetId: unknown =
    typeof target === "object" && target !== null && "id" in target ? target.id : target;
  return [targetId, ...(Array.isArray(targets) ? (targets as unknown[]) : [])];
}
