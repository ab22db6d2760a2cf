import type { Policy } from "../../config/policy-file.ts";
import { type Finding, ill, note } from "../../messages/finding.ts";

type Places = Pick<Policy, "alerts" | "audit" | "channels" | "services" | "sources" | "teams">;

/** What sources and services send and no channel shows, or shows with buttons that everyone is refused. Pure. */
export function placeFindings(policy: Places): readonly Finding[] {
  const { alerts, audit, channels, services, sources, teams } = policy;
  const hasTeams = Object.values(teams).some(({ channel }) => channel !== undefined);
  const of = (kind: "services" | "sources", callers: Readonly<Record<string, Caller>>) =>
    Object.entries(callers).flatMap(([caller, { channel }]) => {
      const about = [kind, caller];
      const what = kind === "sources" ? "alerts" : "proposals";
      const own = channel ?? alerts?.channel;
      const place = own ?? audit?.channel;
      const isToTeams = channel === undefined && hasTeams;
      if (place === undefined)
        return [
          ill(
            `${caller} has no channel: its ${what} ${isToTeams ? "on what no team has " : ""}are shown nowhere`,
            `Add \`channel\` to ${kind}.${caller}, or \`alerts: { channel: C… }\`.`,
            about,
          ),
        ];
      if (own === undefined)
        return [
          note(
            `${caller} has no channel: its ${what} go to ${place}, with the audit trail`,
            `Add \`channel\` to ${kind}.${caller}, or \`alerts: { channel: C… }\`.`,
            about,
          ),
        ];
      if (channels === undefined || channels.includes(place)) return [];
      return [
        note(
          kind === "sources"
            ? `${caller}: its alerts go to ${place}, where \`channels\` lets nobody change anything, so they have no buttons for that`
            : `${caller}: \`channels\` lets nobody change anything in ${place}, so its proposals are posted elsewhere or refused`,
          `Add ${place} to \`channels\`, or name one of those as its \`channel\`.`,
          about,
        ),
      ];
    });
  return [...of("sources", sources), ...of("services", proposers(services))];
}

interface Caller {
  channel?: string | undefined;
}

const proposers = (services: Policy["services"]) =>
  Object.fromEntries(Object.entries(services).filter(([, { propose }]) => propose.length > 0));
