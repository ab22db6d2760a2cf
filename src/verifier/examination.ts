import type { Problem, Reason } from "./reasons.ts";

/** Milliseconds since the epoch. Both ends are included. */
export interface TimeSpan {
  from: number;
  until: number;
}

/** The position of a list or a statement in its issuer's series. */
export interface Edition {
  /** The CRL number of a list, or the evaluation number of a statement. Not every list has one. */
  number?: bigint | undefined;
  /** Milliseconds since the epoch. */
  from: number;
}

/**
 * Whether `edition` is older than `other`. The higher number is newer. Without two numbers, or with
 * equal ones, the one that was issued later is newer.
 */
export function isOlder(edition: Edition, other: Edition): boolean {
  if (edition.number === undefined || other.number === undefined || edition.number === other.number)
    return edition.from < other.from;
  return edition.number < other.number;
}

/**
 * The newest edition of each series that a process has seen. An older one may still be within its
 * validity, but accepting it would bring back what was revoked since. Only what a vendor has signed
 * is recorded, so this stays small.
 */
export class Newest {
  readonly #seen = new Map<string, Edition>();

  /** Whether no newer edition was seen before. If so, this edition is recorded. */
  admits(of: string, edition: Edition): boolean {
    const before = this.#seen.get(of);
    if (before && isOlder(edition, before)) return false;
    this.#seen.set(of, edition);
    return true;
  }
}

/**
 * Collects the results of the checks: every problem in the order of the checks, and the time in
 * which everything that was used is valid.
 */
export class Examination {
  readonly now: number;
  readonly problems: Problem[] = [];
  readonly #newest: Newest | undefined;
  /** The time in which everything that was used is valid, and what ends it. */
  span: TimeSpan & { endsWith: string } = { from: -Infinity, until: Infinity, endsWith: "" };
  /** When the oldest of the lists and other renewed endorsements was issued (ms). */
  endorsedAt: number | undefined;

  constructor(now: number, newest?: Newest) {
    this.now = now;
    this.#newest = newest;
  }

  /** Returns undefined, so that callers can return the result. */
  add(reason: Reason, about = "", short?: Problem["short"]): undefined {
    this.problems.push({ reason, about, short });
    return undefined;
  }

  /**
   * Narrows the common validity. Being outside of it is a problem. For an endorsement that is
   * renewed regularly, its issue date also counts as the age of what is known.
   */
  lasts(
    kind: "cert" | "crl" | "collateral",
    about: string,
    { from, until }: TimeSpan,
    { isRenewed = kind !== "cert" }: { isRenewed?: boolean } = {},
  ): void {
    const { span } = this;
    this.span = {
      from: Math.max(span.from, from),
      until: Math.min(span.until, until),
      endsWith: until < span.until ? about : span.endsWith,
    };
    if (isRenewed) this.endorsedAt = Math.min(this.endorsedAt ?? Infinity, from);
    // This isn't written as "now < from", because a clock that is NaN must be outside of every
    // span.
    if (!(this.now >= from)) this.add(`${kind}-not-yet-valid`, about);
    else if (!(this.now <= until)) this.add(`${kind}-expired`, about);
  }

  /**
   * Records a problem when a newer edition was seen before. Call it only for something signed under
   * a trusted root.
   */
  isNewest(kind: "crl" | "collateral", about: string, of: string, edition: Edition): void {
    if (this.#newest?.admits(of, edition) === false) this.add(`${kind}-superseded`, about);
  }
}

const earliestClock = Date.parse("2025-01-01T00:00:00Z");

/**
 * Whether a clock could be right. On a clock that is before the start of everything, nothing would
 * ever expire.
 */
export function isClock(now: unknown): now is number {
  return typeof now === "number" && Number.isFinite(now) && now >= earliestClock;
}
