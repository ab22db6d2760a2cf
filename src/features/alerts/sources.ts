import * as z from "zod";
import { operationsAmiss, sharedAmong } from "../../config/policy-nonsense.ts";
import { type Nonsense, type Operation, defineSection } from "../../config/policy-section.ts";
import {
  channel,
  matching,
  mentionable,
  oneOf,
  operation,
  section,
  some,
  teamName,
} from "../../config/policy-values.ts";
import { counted } from "../../messages/markdown.ts";
import { isGlob } from "../../text/glob.ts";
import { severityRank } from "./severity-rank.ts";

/** The formats of alerts that Gatehouse reads. */
const alertFormats = ["alertmanager", "grafana", "pagerduty", "plain"] as const;

const headerName = matching(/^[A-Za-z][A-Za-z0-9-]{0,63}$/, "must be the name of an HTTP header");

const severity = matching(
  /^(\*|[^\s*][^*]{0,29})$/,
  'must be a severity as the source names it, or "*" for all others',
);

/**
 * A source, which sends alerts to the API at `/alerts/<its name>`. Its secret is
 * SOURCE_SECRET_<NAME>.
 */
const source = section({
  format: oneOf(alertFormats),
  /** Labels that name a VM. The first one that an alert has counts. */
  vm: some(matching(/^[A-Za-z_][\w.-]{0,100}$/, "must be the name of a label"), "label").default([
    "vm",
    "instance",
  ]),
  /** Undefined for the channel of the VM's team, otherwise that of `alerts`. */
  channel: channel.optional(),
  /**
   * Commands on a VM, written with a dot (`vm.stop`), offered in addition to show, metrics, restart
   * and start.
   */
  offer: z.array(operation).default([]),
  /**
   * The people and groups who are mentioned once when a group of alerts fires, by severity. `*` is
   * for severities that aren't named.
   */
  notify: z.record(severity, some(mentionable, "person or group")).default({}),
  /** Only for Grafana: whether unsigned deliveries are refused. PagerDuty always signs. */
  signed: z.boolean("must be true or false").default(false),
  /** Only for Grafana: the header with the signed time. */
  timestampHeader: headerName.optional(),
}).refine(({ format, signed, timestampHeader }) => {
  return format === "grafana" || (!signed && timestampHeader === undefined);
}, "has `signed` or `timestampHeader`, which only Grafana's format knows");

export type AlertSource = Readonly<z.output<typeof source>>;
export type AlertSources = Readonly<Record<string, AlertSource>>;

/**
 * The environment variable of a source's secret: `SOURCE_SECRET_MY_PROMETHEUS` for `my-prometheus`.
 */
export const secretVariable = (name: string) =>
  `SOURCE_SECRET_${name.toUpperCase().replaceAll("-", "_")}`;

/**
 * The people and groups to mention for alerts of these severities, each with the rank of the worst
 * one that calls them (`severityRank`).
 */
export function calledFor(
  { notify }: Pick<AlertSource, "notify">,
  severities: readonly string[],
): ReadonlyMap<string, number> {
  const named = new Map(Object.entries(notify).map(([key, ids]) => [key.toLowerCase(), ids]));
  const called = new Map<string, number>();
  for (const word of severities)
    for (const who of named.get(word.toLowerCase()) ?? named.get("*") ?? [])
      called.set(who, Math.max(called.get(who) ?? 0, severityRank(word)));
  return called;
}

/** The section `sources` of gatehouse.yml. */
export const sourcesSection = defineSection({
  name: "sources",
  example: `# sources: # of alerts, to API_PORT (docs/operate.md); each has its secret in SOURCE_SECRET_<NAME>
#   prometheus:
#     format: alertmanager
#     offer: [vm.snapshot] # buttons beside Show, Metrics, Restart, and Start
#     notify: { critical: ["S01ONCALL"] } # mentioned when alerts of this severity fire; "*": all others
`,
  schema: z.record(teamName, source).default({}),
  nonsenseIn: (sources, operations) => [
    ...wrongOffers(sources, operations),
    ...sharedAmong(
      Object.keys(sources).map((name) => ({
        name,
        // A variable NAME_FILE names the file that holds NAME, so the two names collide.
        credential: secretVariable(name).replace(/_FILE$/, ""),
        path: ["sources", name],
      })),
      "reads its secret from the variable of",
    ),
  ],
  mentionedIn: (sources) =>
    Object.values(sources).flatMap(({ notify }) => Object.values(notify).flat()),
  callersIn: (sources) =>
    Object.entries(sources).map(([name, { channel: where }]) => ({
      name,
      caller: `sources.${name}`,
      brings: "alert",
      secret: secretVariable(name),
      channel: where,
    })),
  counted: (sources) => counted(Object.keys(sources).length, "source"),
});

function wrongOffers(sources: AlertSources, operations: readonly Operation[]): readonly Nonsense[] {
  const among = operations.filter((candidate) => candidate.isOnVm);
  const isOther = "is not about a VM, so it can't be offered";
  return Object.entries(sources).flatMap(([name, { offer }]) => {
    const path = ["sources", name, "offer"];
    const globs = offer.flatMap((command, at) =>
      isGlob(command)
        ? [{ path: [...path, at], message: `(${command}) must be one command: each is a button` }]
        : [],
    );
    return [...operationsAmiss(offer, path, { among, operations, isOther }), ...globs];
  });
}
