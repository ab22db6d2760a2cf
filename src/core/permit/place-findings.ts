import type { Policy } from "../../config/policy-file.ts";
import { type Finding, ill, note } from "../../messages/finding.ts";

type Places = Pick<Policy, "alerts" | "audit" | "channels" | "teams">;

/**
 * Finds callers of the API whose messages are shown in no channel, or in a channel where nobody may
 * change anything.
 */
export function placeFindings(
  { alerts, audit, channels, teams }: Places,
  callers: Readonly<Record<string, { channel?: string | undefined }>>,
  about: {
    /** The section of gatehouse.yml that names the callers: `sources`. */
    section: string;
    /** The messages that they send: `alerts`. */
    messages: string;
    /** Words the finding about a caller whose channel lets nobody change anything. */
    closed: (caller: string, channelId: string) => string;
  },
): readonly Finding[] {
  const { section, messages, closed } = about;
  const hasTeams = Object.values(teams).some(({ channel }) => channel !== undefined);
  return Object.entries(callers).flatMap(([caller, { channel }]) => {
    const at = [section, caller];
    const own = channel ?? alerts?.channel;
    const place = own ?? audit?.channel;
    const isToTeams = channel === undefined && hasTeams;
    const fix = `Add \`channel\` to ${section}.${caller}, or \`alerts: { channel: C… }\`.`;
    if (place === undefined) {
      const some = isToTeams ? "on what no team has " : "";
      return [ill(`${caller} has no channel: its ${messages} ${some}are shown nowhere`, fix, at)];
    }
    if (own === undefined) {
      const where = `its ${messages} go to ${place}, with the audit trail`;
      return [note(`${caller} has no channel: ${where}`, fix, at)];
    }
    if (channels === undefined || channels.includes(place)) return [];
    const way = `Add ${place} to \`channels\`, or name one of those as its \`channel\`.`;
    return [note(closed(caller, place), way, at)];
  });
}
