import type { Saved } from "../permit/permit.ts";
import { callOf } from "./stage.ts";
import type { StoredRequest } from "./stored-request.ts";

/** What a request saved of its target right before it replaced the data, once that has an ID. */
export function savedBy({ record, stage }: StoredRequest): Saved | undefined {
  const snapshotId = callOf(stage)?.safety?.snapshotId;
  return snapshotId === undefined ? undefined : { targetId: record.target.id, snapshotId };
}
