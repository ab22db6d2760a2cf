import type { Policy } from "../../config/policy-file.ts";
import { type Finding, ill, note } from "../../messages/finding.ts";

type Places = Pick<Policy, "alerts" | "audit" | "channels" | "teams">;

/** What callers of the API send and no channel shows, or shows with buttons that everyone is refused. Pure. */
export function placeFindings(
  { alerts, audit, channels, teams }: Places,
  callers: Readonly<Record<string, { channel?: string | undefined }>>,
  about: {
    /** In gatehouse.yml: `sources`. */
    section: string;
    /** What they send: `alerts`. */
    what: string;
    /** Of a channel where nobody may change anything. */
    closed: (caller: string, channelId: string) => string;
  },
): readonly Finding[] {
  const { section, what, closed } = about;
  const hasTeams = Object.values(teams).some(({ channel }) => channel !== undefined);
  return Object.entries(callers).flatMap(([caller, { channel }]) => {
    const at = [section, caller];
    const own = channel ?? alerts?.channel;
    const place = own ?? audit?.channel;
    const isToTeams = channel === undefined && hasTeams;
    const mend = `Add \`channel\` to ${section}.${caller}, or \`alerts: { channel: C… }\`.`;
    if (place === undefined) {
      const some = isToTeams ? "on what no team has " : "";
      return [ill(`${caller} has no channel: its ${what} ${some}are shown nowhere`, mend, at)];
    }
    if (own === undefined) {
      const where = `its ${what} go to ${place}, with the audit trail`;
      return [note(`${caller} has no channel: ${where}`, mend, at)];
    }
    if (channels === undefined || channels.includes(place)) return [];
    const way = `Add ${place} to \`channels\`, or name one of those as its \`channel\`.`;
    return [note(closed(caller, place), way, at)];
  });
}
