import { fieldsNamed, type Fields } from "../redis/redis.ts";

/** A channel that was closed is tried again after this: somebody may have invited Gatehouse (ms). */
export const tryAgainMs = 10_000;

/** Since when channels are closed to Gatehouse, as the hash of what is posted there remembers (ms by Redis). */
export type Closed = Readonly<Record<string, number>>;

export const closedIn = (fields: Fields): Closed =>
  Object.fromEntries(fieldsNamed("closed:", fields).map(([channel, at]) => [channel, Number(at)]));

export const closedField = (channelId: string, now: number) => ({
  [`closed:${channelId}`]: String(now),
});

/** The first of these channels that wasn't closed a moment ago; undefined where none is named, or all were. */
export function openPlace(
  places: readonly (string | undefined)[],
  closed: Closed,
  now: number,
): string | undefined {
  const isOpen = (channelId: string) => now - (closed[channelId] ?? -Infinity) >= tryAgainMs;
  return places.find(
    (channelId) => channelId !== undefined && channelId !== "" && isOpen(channelId),
  );
}
