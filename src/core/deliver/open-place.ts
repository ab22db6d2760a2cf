import type { Policy } from "../../config/policy-file.ts";
import { fieldsNamed, type Fields } from "../../redis/redis.ts";

/**
 * How long until a closed channel is tried again (ms). Somebody may have invited Gatehouse
 * meanwhile.
 */
export const tryAgainMs = 10_000;

/**
 * Since when each channel has been closed to Gatehouse (Redis, ms). It is stored in the hash of the
 * subject that was to be posted there.
 */
export type ClosedChannels = Readonly<Record<string, number>>;

export const closedIn = (fields: Fields): ClosedChannels =>
  Object.fromEntries(fieldsNamed("closed:", fields).map(([channel, at]) => [channel, Number(at)]));

export const closedField = (channelId: string, now: number) => ({
  [`closed:${channelId}`]: String(now),
});

/**
 * Returns the channel to post in: the own one, or while that is closed the one of `alerts`, then
 * the one of the audit trail. When there are teams, `alerts` is left out, because its readers may
 * not learn about a team's targets. Undefined when no channel is named, or when all were closed a
 * moment ago.
 */
export function openPlace(
  own: string | undefined,
  { alerts, audit, teams }: Pick<Policy, "alerts" | "audit" | "teams">,
  closed: ClosedChannels,
  now: number,
  /** Tells which channels are preferred. The first of these that is open is chosen. */
  isBetter: (channelId: string) => boolean = () => true,
): string | undefined {
  const hasTeams = Object.keys(teams).length > 0;
  const isOpen = (channelId: string) => now - (closed[channelId] ?? -Infinity) >= tryAgainMs;
  const open = [own, ...(hasTeams ? [] : [alerts?.channel]), audit?.channel].filter(
    (channelId) => channelId !== undefined && channelId !== "" && isOpen(channelId),
  );
  return open.find((channelId = "") => isBetter(channelId)) ?? open[0];
}
