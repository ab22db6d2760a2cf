import { type Basis, type Saved, usualBasis } from "../permit/permit.ts";
import { callOf } from "./stage.ts";
import type { StoredRequest } from "./stored-request.ts";

/**
 * Returns what a request saved of its target right before it replaced the data, once the snapshot
 * has an ID.
 */
export function savedBy({ record, stage }: StoredRequest): Saved | undefined {
  const snapshotId = callOf(stage)?.safety?.snapshotId;
  return snapshotId === undefined ? undefined : { targetId: record.target.id, snapshotId };
}

/**
 * Returns the right by which an undo of this request is asked for. It is the usual one where the
 * request saved nothing, or where nothing is undone.
 */
export function basisToUndo(undone: StoredRequest | undefined): Basis {
  const saved = undone && savedBy(undone);
  return saved ? { kind: "undo", saved } : usualBasis;
}
