import type { Progress } from "./record.ts";

/** In a progress: the time of the move that saves it, by Redis. No real time is below 0. */
export const timeOfMove = -1;

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
