import { statusFacts } from "../compute/compute.ts";

/** For a VM or a project; an unknown status gets a question mark. */
export function statusSign(status: string): string {
  return statusFacts(status).sign;
}

/** ERROR first, then changing, stopped, running. */
export function byTrouble(
  a: { status: string; name: string },
  b: { status: string; name: string },
): number {
  return rank(a.status) - rank(b.status) || byName(a, b);
}

function rank(status: string): number {
  return statusFacts(status).rank;
}

/** By code unit. */
export function byName(a: { name: string }, b: { name: string }): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}

/** The first `most` of a sort, in one pass: sorting 100,000 VMs would block the process. */
export function firstOf<T>(all: readonly T[], most: number, order: (a: T, b: T) => number): T[] {
  let first: T[] = [];
  let bound: T | undefined;
  for (const one of all) {
    if (bound !== undefined && order(one, bound) >= 0) continue;
    first.push(one);
    if (first.length < most * 2) continue;
    first = first.toSorted(order).slice(0, most);
    bound = first.at(-1);
  }
  return first.toSorted(order).slice(0, most);
}

/** `3 RUNNING, 1 ERROR`, most trouble first. */
export function countByStatus(all: readonly { status: string }[]): string {
  const counts = new Map<string, number>();
  for (const { status } of all) counts.set(status, (counts.get(status) ?? 0) + 1);
  return [...counts]
    .toSorted(([a], [b]) => rank(a) - rank(b))
    .map(([status, count]) => `${count} ${status}`)
    .join(", ");
}
