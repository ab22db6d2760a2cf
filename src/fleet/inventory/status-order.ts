import { statusFacts } from "../compute/compute.ts";
import { byName } from "./contents.ts";

/** The sign for a VM's or a project's status. An unknown status gets a question mark. */
export function statusSign(status: string): string {
  return statusFacts(status).sign;
}

/** The reasons why VMs fail attestation, by VM ID. */
export type Failing = ReadonlyMap<string, string>;

type Shown = { id: string; name: string; status: string };

/**
 * The status with its sign, or with the failed attestation if there is one: `🔴 RUNNING, measurement
 * matches no pin`.
 */
export function signed({ id, status }: Omit<Shown, "name">, failing: Failing = new Map()): string {
  const why = failing.get(id);
  return why === undefined ? `${statusSign(status)} ${status}` : `🔴 ${status}, ${why}`;
}

/** Sorts what is in trouble or fails attestation first, then by status. */
export const redFirst = (failing: Failing) => (a: Shown, b: Shown) => {
  const red = ({ id, status }: Shown) => Number(failing.has(id) || statusFacts(status).isAlarming);
  return red(b) - red(a) || byTrouble(a, b);
};

/** Sorts ERROR first, then changing, stopped, running. */
export function byTrouble(a: Omit<Shown, "id">, b: Omit<Shown, "id">): number {
  return rankOf(a) - rankOf(b) || byName(a, b);
}

const rankOf = ({ status }: Pick<Shown, "status">) => statusFacts(status).rank;

/** The first `most` items of a sort, in one pass. Sorting 100,000 VMs would block the process. */
export function firstOf<T>(all: readonly T[], most: number, order: (a: T, b: T) => number): T[] {
  let first: T[] = [];
  let bound: T | undefined;
  for (const each of all) {
    if (bound !== undefined && order(each, bound) >= 0) continue;
    first.push(each);
    if (first.length < most * 2) continue;
    first = first.toSorted(order).slice(0, most);
    bound = first.at(-1);
  }
  return first.toSorted(order).slice(0, most);
}

/** `3 RUNNING, 1 ERROR`, with most trouble first. */
export function countByStatus(
  all: readonly { id?: string; status: string }[],
  failing: Failing = new Map(),
): string {
  const failed = all.filter(({ id = "" }) => failing.has(id)).length;
  const counts = new Map<string, number>();
  for (const { status } of all) counts.set(status, (counts.get(status) ?? 0) + 1);
  return [...counts]
    .toSorted(([a], [b]) => statusFacts(a).rank - statusFacts(b).rank)
    .map(([status, count]) => `${count} ${status}`)
    .concat(failed === 0 ? [] : `🔴 ${failed} failing attestation`)
    .join(", ");
}
