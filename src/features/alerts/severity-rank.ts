/** Names of severities, the most severe first; sources use many. */
const ranks: readonly (readonly string[])[] = [
  ["emergency", "fatal", "disaster", "page", "critical", "crit", "p1", "sev1"],
  ["error", "high", "major", "p2", "sev2"],
  [],
  ["warning", "warn", "average", "minor", "p3", "sev3"],
  ["low", "info", "information", "none", "p4", "p5", "sev4", "sev5"],
];
/** The rank of names that aren't listed. */
const middle = 2;

export const highestRank = ranks.length;

/** How severe this is; a higher number is more severe. */
export function severityRank(severity: string): number {
  const place = ranks.findIndex((names) => names.includes(severity.toLowerCase()));
  return ranks.length - (place < 0 ? middle : place);
}
