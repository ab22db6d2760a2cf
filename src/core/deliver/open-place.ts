import type { Policy } from "../../config/policy-file.ts";
import { fieldsNamed, type Fields } from "../../redis/redis.ts";

/** A channel that was closed is tried again after this: somebody may have invited Gatehouse (ms). */
export const tryAgainMs = 10_000;

/** Since when channels are closed to Gatehouse, as the hash of what is posted there remembers (ms by Redis). */
export type ClosedChannels = Readonly<Record<string, number>>;

export const closedIn = (fields: Fields): ClosedChannels =>
  Object.fromEntries(fieldsNamed("closed:", fields).map(([channel, at]) => [channel, Number(at)]));

export const closedField = (channelId: string, now: number) => ({
  [`closed:${channelId}`]: String(now),
});

/**
 * The channel to post in: the own one; while it is closed that of `alerts`, then that of the audit trail. Where there are teams,
 * `alerts` is left out: its readers may not learn of what a team has. Undefined where no channel is named, or all were closed a
 * moment ago.
 */
export function openPlace(
  own: string | undefined,
  { alerts, audit, teams }: Pick<Policy, "alerts" | "audit" | "teams">,
  closed: ClosedChannels,
  now: number,
  /** Of several, the first of these comes before the others. */
  isBetter: (channelId: string) => boolean = () => true,
): string | undefined {
  const hasTeams = Object.keys(teams).length > 0;
  const isOpen = (channelId: string) => now - (closed[channelId] ?? -Infinity) >= tryAgainMs;
  const open = [own, ...(hasTeams ? [] : [alerts?.channel]), audit?.channel].filter(
    (channelId) => channelId !== undefined && channelId !== "" && isOpen(channelId),
  );
  return open.find((channelId = "") => isBetter(channelId)) ?? open[0];
}
