import * as z from "zod";
import { operationsAmiss, sharedAmong } from "../../config/policy-nonsense.ts";
import { type Nonsense, type Operation, defineSection } from "../../config/policy-section.ts";
import {
  channel,
  matching,
  oneOf,
  operation,
  section,
  some,
  teamName,
} from "../../config/policy-values.ts";
import { counted } from "../../messages/message.ts";
import { isGlob } from "../../text/glob.ts";

/** What sends alerts, as it words and signs them. */
const alertFormats = ["alertmanager", "grafana", "pagerduty", "plain"] as const;

const headerName = matching(/^[A-Za-z][A-Za-z0-9-]{0,63}$/, "must be the name of an HTTP header");

/** Sends alerts to the API, at `/alerts/<its name>`; its secret is SOURCE_SECRET_<NAME>. */
const source = section({
  format: oneOf(alertFormats),
  /** Labels that name a VM: the first that an alert has counts. */
  vm: some(matching(/^[A-Za-z_][\w.-]{0,100}$/, "must be the name of a label"), "label").default([
    "vm",
    "instance",
  ]),
  /** Undefined: that of the VM's team, else `alerts`. */
  channel: channel.optional(),
  /** Commands on a VM, with a dot, offered beside show, metrics, and restart. */
  offer: z.array(operation).default([]),
  /** Grafana alone: whether only what it has signed is taken. PagerDuty always signs. */
  signed: z.boolean("must be true or false").default(false),
  /** Grafana alone: the header with the time that it signs, too. */
  timestampHeader: headerName.optional(),
}).refine(({ format, signed, timestampHeader }) => {
  return format === "grafana" || (!signed && timestampHeader === undefined);
}, "has `signed` or `timestampHeader`, which only Grafana's format knows");

export type AlertSource = Readonly<z.output<typeof source>>;
export type AlertSources = Readonly<Record<string, AlertSource>>;

/** `SOURCE_SECRET_MY_PROMETHEUS` of the source `my-prometheus`. */
export const secretVariable = (name: string) =>
  `SOURCE_SECRET_${name.toUpperCase().replaceAll("-", "_")}`;

/** `sources` in gatehouse.yml. */
export const sourcesSection = defineSection({
  name: "sources",
  schema: z.record(teamName, source).default({}),
  nonsenseIn: (sources, operations) => [
    ...wrongOffers(sources, operations),
    ...sharedAmong(
      Object.keys(sources).map((name) => ({
        name,
        // NAME_FILE names the file of NAME
        by: secretVariable(name).replace(/_FILE$/, ""),
        path: ["sources", name],
      })),
      "reads its secret from the variable of",
    ),
  ],
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
  const among = operations.filter((one) => one.isOnVm);
  const isOther = "is not about a VM, so it can't be offered";
  return Object.entries(sources).flatMap(([name, { offer }]) => {
    const path = ["sources", name, "offer"];
    const globs = offer.flatMap((one, at) =>
      isGlob(one)
        ? [{ path: [...path, at], message: `(${one}) must be one command: each is a button` }]
        : [],
    );
    return [...operationsAmiss(offer, path, { among, operations, isOther }), ...globs];
  });
}
