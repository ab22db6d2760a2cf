import { isSameTime } from "../../text/parse-time.ts";
import type { Seen, Target } from "../../registry/define.ts";

/** A read in words: a status, "gone", or how many share a name. */
export function statusOf(seen: Seen | undefined): string {
  if (seen === undefined) return "gone";
  if (!isList(seen)) return seen.status;
  return seen.length > 1 ? `${seen.length} of that name` : (seen[0]?.status ?? "gone");
}

/** The ID is the same, but it was created at another time. */
export function isAnotherOne(seen: Seen | undefined, before: Seen | Target | undefined): boolean {
  if (seen === undefined || before === undefined || isList(seen) || isList(before)) return false;
  return (
    seen.createdAt !== undefined &&
    before.createdAt !== undefined &&
    !isSameTime(seen.createdAt, before.createdAt)
  );
}

export function isList(seen: Seen | Target): seen is Extract<Seen, readonly unknown[]> {
  return Array.isArray(seen);
}
