/**
 * The rollback guard: restoring is the easy way round whatever was mended since the snapshot. Returns why such a restore
 * needs one approval more, in words, or undefined.
 */
export function rollbackReason(restore: {
  /** What we know of the snapshot; undefined for an id typed by hand. */
  snapshot: { at: number; measurement?: string; by: string } | undefined;
  measurementNow: string | undefined;
  /** Of policy's `attestation.maxSnapshotAge`. */
  maxAgeMs: number | undefined;
  now: number;
}): string | undefined {
  const { snapshot, measurementNow, maxAgeMs, now } = restore;
  if (!snapshot) return "nothing is known of this snapshot";
  if (
    measurementNow !== undefined &&
    snapshot.measurement !== undefined &&
    snapshot.measurement !== measurementNow
  ) {
    return "the snapshot was taken under another measurement";
  }
  if (maxAgeMs !== undefined && now - snapshot.at > maxAgeMs) {
    return "the snapshot is older than policy allows without a second look";
  }
  return undefined;
}
