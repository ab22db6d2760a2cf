import type { Saved } from "../../policy/permit.ts";
import type { StoredRequest } from "./record.ts";

/** What a request saved of its target right before it replaced the data, once that has an ID. */
export function savedBy({ record, progress }: StoredRequest): Saved | undefined {
  const snapshotId = progress.safety?.snapshotId;
  return snapshotId === undefined ? undefined : { targetId: record.target.id, snapshotId };
}
