import { isTransitional } from "../compute/settle.ts";

/** A sign and a word for a status of a VM or project; an unknown one is shown as it is. */
export function statusSign(status: string): string {
  if (status === "RUNNING" || status === "ACTIVE") return "🟢";
  if (status === "STOPPED") return "⚪";
  if (status === "ERROR") return "🔴";
  return isTransitional(status) ? "🟡" : "❔";
}

/** Trouble first: ERROR, then what is changing, then what stands still, then what runs. */
export function byTrouble(
  a: { status: string; name: string },
  b: { status: string; name: string },
): number {
  return rank(a.status) - rank(b.status) || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
}

function rank(status: string): number {
  if (status === "ERROR") return 0;
  if (status === "RUNNING" || status === "ACTIVE") return 3;
  return status === "STOPPED" ? 2 : 1;
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
