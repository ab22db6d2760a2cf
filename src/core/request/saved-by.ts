import { type Basis, type Saved, usualBasis } from "../permit/permit.ts";
import { callOf } from "./stage.ts";
import type { StoredRequest } from "./stored-request.ts";

/** What a request saved of its target right before it replaced the data, once that has an ID. */
export function savedBy({ record, stage }: StoredRequest): Saved | undefined {
  const snapshotId = callOf(stage)?.safety?.snapshotId;
  return snapshotId === undefined ? undefined : { targetId: record.target.id, snapshotId };
}

/** By which right it is asked for to undo this request; the usual one where it saved nothing, or where none is undone. */
export function basisToUndo(undone: StoredRequest | undefined): Basis {
  const saved = undone && savedBy(undone);
  return saved ? { kind: "undo", saved } : usualBasis;
}
