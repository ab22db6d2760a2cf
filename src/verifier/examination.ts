import type { Edition, Newest } from "./newest.ts";
import type { Problem, Reason } from "./reasons.ts";

/** Both ends included, milliseconds since the epoch. */
export interface Span {
  from: number;
  until: number;
}

type Kind = "cert" | "crl" | "collateral";

/** What was checked so far: every problem in the order of the checks, and the time in which everything used is valid. */
export interface Examination {
  readonly now: number;
  readonly problems: readonly Problem[];
  /** Returns nothing, for who has nothing else to return either. */
  add(reason: Reason, about?: string): undefined;
  /** Narrows the time; being outside of it is a problem. What is renewed says by its begin how old the view of it is. */
  lasts(kind: Kind, about: string, span: Span, isRenewed?: boolean): void;
  /** One that is older than another that was seen is a problem. Only of what is signed, under a root that is trusted. */
  isNewest(kind: "crl" | "collateral", about: string, of: string, edition: Edition): void;
  /** The time in which everything used is valid, and what ends it. */
  span(): Span & { endsWith: string };
  /** When the oldest of the lists and other renewed endorsements was made. */
  endorsedAt(): number | undefined;
}

export function startExamination(now: number, newest?: Newest): Examination {
  const problems: Problem[] = [];
  let [from, until, oldest] = [-Infinity, Infinity, Infinity];
  let endsWith = "";
  return {
    now,
    problems,
    add(reason, about = "") {
      problems.push({ reason, about });
      return undefined;
    },
    lasts(kind, about, span, isRenewed = kind !== "cert") {
      from = Math.max(from, span.from);
      if (span.until < until) endsWith = about;
      until = Math.min(until, span.until);
      if (isRenewed) oldest = Math.min(oldest, span.from);
      // Not "now < from": a clock that is no number is in no span
      if (!(now >= span.from)) problems.push({ reason: `${kind}-not-yet-valid`, about });
      else if (!(now <= span.until)) problems.push({ reason: `${kind}-expired`, about });
    },
    isNewest(kind, about, of, edition) {
      if (newest?.admits(of, edition) === false)
        problems.push({ reason: `${kind}-superseded`, about });
    },
    span: () => ({ from, until, endsWith }),
    endorsedAt: () => (oldest === Infinity ? undefined : oldest),
  };
}

const earliestClock = Date.parse("2025-01-01T00:00:00Z");

/** A clock that could be right. Everything with an end would hold for ever on a clock that stands before it. */
export function isClock(now: unknown): now is number {
  return typeof now === "number" && Number.isFinite(now) && now >= earliestClock;
}
