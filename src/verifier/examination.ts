import type { Problem, Reason } from "./reasons.ts";

/** Both ends included, milliseconds since the epoch. */
export interface TimeSpan {
  from: number;
  until: number;
}

/** Where a list or a statement stands among its issuer's of that kind. */
export interface Edition {
  /** A list's CRL number, a statement's evaluation number; not every list has one. */
  number?: bigint | undefined;
  /** Milliseconds since the epoch. */
  from: number;
}

/** The higher number is the newer; without two numbers, or with equal ones, what was issued later. */
export function isOlder(one: Edition, other: Edition): boolean {
  if (one.number === undefined || other.number === undefined || one.number === other.number)
    return one.from < other.from;
  return one.number < other.number;
}

/**
 * The newest of each kind that a process has seen: an older one may not be over yet, and would bring back what was revoked
 * since. Holds only what a vendor has signed, so that it stays small.
 */
export class Newest {
  readonly #seen = new Map<string, Edition>();

  /** Whether none that was seen before is newer; remembers it then. */
  admits(of: string, edition: Edition): boolean {
    const before = this.#seen.get(of);
    if (before && isOlder(edition, before)) return false;
    this.#seen.set(of, edition);
    return true;
  }
}

/** What was checked so far: every problem in the order of the checks, and the time in which everything used is valid. */
export class Examination {
  readonly now: number;
  readonly problems: Problem[] = [];
  readonly #newest: Newest | undefined;
  /** The time in which everything used is valid, and what ends it. */
  span: TimeSpan & { endsWith: string } = { from: -Infinity, until: Infinity, endsWith: "" };
  /** When the oldest of the lists and other renewed endorsements was made. */
  endorsedAt: number | undefined;

  constructor(now: number, newest?: Newest) {
    this.now = now;
    this.#newest = newest;
  }

  /** Returns nothing, for who has nothing else to return either. */
  add(reason: Reason, about = "", short?: Problem["short"]): undefined {
    this.problems.push({ reason, about, short });
    return undefined;
  }

  /** Narrows the time; being outside of it is a problem. What is renewed says by its begin how old the view of it is. */
  lasts(
    kind: "cert" | "crl" | "collateral",
    about: string,
    { from, until }: TimeSpan,
    isRenewed = kind !== "cert",
  ): void {
    const { span } = this;
    this.span = {
      from: Math.max(span.from, from),
      until: Math.min(span.until, until),
      endsWith: until < span.until ? about : span.endsWith,
    };
    if (isRenewed) this.endorsedAt = Math.min(this.endorsedAt ?? Infinity, from);
    // Not "now < from": a clock that is no number is in no span
    if (!(this.now >= from)) this.add(`${kind}-not-yet-valid`, about);
    else if (!(this.now <= until)) this.add(`${kind}-expired`, about);
  }

  /** One that is older than another that was seen is a problem. Only of what is signed, under a root that is trusted. */
  isNewest(kind: "crl" | "collateral", about: string, of: string, edition: Edition): void {
    if (this.#newest?.admits(of, edition) === false) this.add(`${kind}-superseded`, about);
  }
}

const earliestClock = Date.parse("2025-01-01T00:00:00Z");

/** A clock that could be right. Everything with an end would hold for ever on a clock that stands before it. */
export function isClock(now: unknown): now is number {
  return typeof now === "number" && Number.isFinite(now) && now >= earliestClock;
}
