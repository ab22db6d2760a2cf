import type { Progress, RequestRecord } from "./record.ts";

/**
 * In a progress: the time of the move that saves it, by Redis. As that of a record's creation: of the script that makes it, and then it
 * runs until so long after. No real time is below 0.
 */
export const timeOfMove = -1;

/** The record with these in place of `timeOfMove` and of what is counted from it. */
export function withTimeOfCreation<At>(record: RequestRecord, at: At, runsUntil: At) {
  return record.createdAt === timeOfMove ? { ...record, createdAt: at, runsUntil } : record;
}

/** The progress with this in place of `timeOfMove`. */
export function withTimeOfMove<At>(progress: Progress, at: At) {
  const { sentAt, endedAt, mark } = progress;
  return {
    ...progress,
    ...(sentAt === timeOfMove ? { sentAt: at } : {}),
    ...(endedAt === timeOfMove ? { endedAt: at } : {}),
    ...(mark?.at === timeOfMove ? { mark: { ...mark, at } } : {}),
  };
}
