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
