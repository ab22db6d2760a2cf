import { hash } from "node:crypto";
import * as z from "zod";
import { plain } from "../../messages/markdown.ts";
import { parseIsoTime } from "../../text/parse-time.ts";
import type { AlertSource } from "./sources.ts";

/** The parts of an alert that are shown, shortened. */
export interface Detail {
  name: string;
  summary: string;
  severity: string;
  /** What the source says beyond the summary. */
  description?: string;
  /** Addresses of web pages (`webAddressIn`). */
  runbook?: string;
  graph?: string;
  /** The value of its VM label; empty when it has none. */
  vm: string;
  since: number;
}

export interface Alert extends Detail {
  /** Identifies the alert in every delivery. */
  key: string;
  /**
   * When it began to fire, or when an incident entered its present state (ms, by the clock of its
   * source).
   */
  at: number;
  /** When it ended (ms); undefined while it fires, 0 when its source doesn't say when. */
  endedAt?: number;
}

/** The state of a group, as its sender saw it. */
export interface Delivery {
  /** The key that the source groups by. */
  groupKey: string;
  alerts: readonly Alert[];
  /** Number of alerts of the group that the source left out, firing or not. */
  omitted: number;
  /** Set if alerts couldn't be read. The others count. */
  unreadable?: UnreadableAlerts;
  /** True if it lists all alerts of its group, so that a missing one is no longer reported. */
  isWhole?: boolean;
  /** Distinguishes the peers of a source. */
  sender?: string;
  /** When it was sent or happened, by the sender's clock (ms). */
  sentAt?: number;
  /** When it arrived (ms by Redis). */
  arrivedAt?: number;
}

/** Alerts of a delivery that aren't as their format says. */
export interface UnreadableAlerts {
  count: number;
  /** How many of them don't say that they have ended, so they may fire. */
  open: number;
  /** What is wrong with the first one. */
  why: string;
}

/** What is wrong and in which field. It never contains the field's value. */
type Unreadable = Record<"field" | "text", string>;

type Read = (body: unknown, source: AlertSource) => Delivery | Unreadable;

export const shortHash = (...parts: readonly string[]) =>
  hash("sha256", JSON.stringify(parts), "base64url").slice(0, 12);

const time = z.string().transform((text, context) => {
  const at = parseIsoTime(text);
  if (at === undefined) context.addIssue("must be a time like 2026-11-25T03:12:00Z");
  return at ?? 0;
});
/** A field that may be missing. Senders also write null or an empty text for that. */
const optional = <Type extends z.ZodType>(type: Type) =>
  z.preprocess((value) => (value === null || value === "" ? undefined : value), type.optional());

const words = z.string().min(1);
const labels = z.record(z.string(), z.unknown());
const status = z.enum(["firing", "resolved"]);

const grouped = z.object({
  groupKey: words,
  status: optional(status),
  externalURL: optional(z.string()),
  truncatedAlerts: optional(z.number().int().min(0).max(1_000_000)),
  alerts: z.array(z.unknown()),
});
const groupedAlert = z.object({
  status,
  labels: optional(labels),
  annotations: optional(labels),
  startsAt: time,
  endsAt: optional(time),
  fingerprint: optional(words),
  generatorURL: z.unknown().optional(),
  dashboardURL: z.unknown().optional(),
  panelURL: z.unknown().optional(),
});

/**
 * Reads Alertmanager's format
 * (https://prometheus.io/docs/alerting/latest/configuration/#webhook_config), and Grafana's, which
 * follows it. With `max_alerts` both list the first alerts in the order of their labels, and
 * `status` covers only these: it says nothing about the alerts left out. A firing group without a
 * firing alert in its list isn't listed completely.
 */
const readGrouped =
  (version: string): Read =>
  (body, source) =>
    readDelivery(grouped.extend({ version: z.literal(version) }), body, (group) =>
      readEach(groupedAlert, group.alerts, (alerts) => ({
        groupKey: group.groupKey,
        omitted: group.truncatedAlerts ?? 0,
        isWhole:
          !group.truncatedAlerts &&
          (group.status !== "firing" || alerts.some((alert) => alert.status === "firing")),
        sender: shortHash(group.externalURL ?? ""),
        alerts: alerts.map((alert) => alertInGroup(alert, source)),
      })),
    );

function alertInGroup(alert: z.output<typeof groupedAlert>, source: AlertSource): Alert {
  const { labels: all = {}, annotations: notes = {}, startsAt: at, endsAt = 0 } = alert;
  return {
    key: shortHash(
      alert.fingerprint ??
        JSON.stringify(Object.entries(all).toSorted(([a], [b]) => (a < b ? -1 : 1))),
    ),
    at,
    ...(alert.status === "resolved" ? { endedAt: Math.max(0, endsAt) } : {}),
    ...titleOf(all, notes, alert.status),
    ...extras({
      description: isGiven(notes["summary"]) ? notes["description"] : undefined,
      runbook: [notes["runbook_url"], notes["runbook"]],
      graph: [
        alert.panelURL,
        alert.dashboardURL,
        notes["dashboard_url"],
        notes["dashboard"],
        alert.generatorURL,
      ],
    }),
    vm: vmIn(all, source),
    since: at,
  };
}

/**
 * What the alert is called, and says. Grafana gives the rules that it can't evaluate one name for
 * all, and puts the rule's own in a label. A rule may also be set to alert under its own name then
 * (https://grafana.com/docs/grafana/latest/alerting/fundamentals/alert-rule-evaluation/nodata-and-error-states/).
 */
function titleOf(all: Labels, notes: Labels, state: z.output<typeof status>) {
  const { summary, description, message, Error: why } = notes;
  const usual = [summary, description, message].find(isGiven);
  const { alertname, severity } = all;
  const shared = troubleOfRules.get(alertname);
  const own =
    state === "firing"
      ? troubleOfRules.get(`Datasource${String(notes["grafana_state_reason"])}`)
      : undefined;
  const rule = short(shared === undefined ? alertname : all["rulename"]);
  const trouble = shared ?? own;
  if (trouble === undefined || rule === "") return texts(alertname, usual, severity);
  return texts(`${rule} ${trouble}`, [why, usual].find(isGiven), severity);
}

type Labels = Readonly<Record<string, unknown>>;

const troubleOfRules: ReadonlyMap<unknown, string> = new Map([
  ["DatasourceError", "can't be evaluated"],
  ["DatasourceNoData", "has no data"],
]);

const isGiven = (value: unknown) => typeof value === "string" && value.trim() !== "";

const text = optional(z.string());
const named = optional(z.object({ summary: text }));
const link = z.object({ href: z.unknown().optional(), text });
const incident = z.object({
  type: z.literal("incident"),
  id: words,
  status: words,
  title: text,
  created_at: optional(time),
  incident_key: text,
  urgency: text,
  priority: named,
  service: named,
  links: optional(z.array(optional(link))),
  body: optional(z.object({ details: z.unknown().optional() })),
});
const event = z.object({ event: z.object({ occurred_at: time, data: incident }) });
/** A ping or a note: an event that neither fires nor ends. */
const otherType = z.object({ type: z.string().regex(/^(?!incident$)/) });
const otherEvent = z.object({ event: z.object({ data: otherType }) });

/**
 * Reads PagerDuty's format (https://developer.pagerduty.com/docs/webhooks-overview). An incident is
 * a group of one alert.
 */
const readIncident: Read = (body, source) => {
  if (otherEvent.safeParse(body).success) return { groupKey: "", alerts: [], omitted: 0 };
  return readDelivery(event, body, ({ event: { occurred_at: at, data } }) => {
    const { id, title = "", incident_key, urgency } = data;
    const [service, priority] = [data.service?.summary, data.priority?.summary];
    const given = (data.links ?? []).filter((incidentLink) => incidentLink !== undefined);
    const links = Map.groupBy(given, (incidentLink) => /runbook/i.test(incidentLink.text ?? ""));
    const addresses = (isOne: boolean) => (links.get(isOne) ?? []).map(({ href }) => href);
    const alert = {
      key: shortHash(id),
      at,
      ...(data.status === "resolved" ? { endedAt: at } : {}),
      ...texts(title, service, priority ?? urgency),
      ...extras({
        description: data.body?.details,
        runbook: addresses(true),
        graph: addresses(false),
      }),
      vm: vmIn({ title, service, incident_key, urgency, priority }, source),
      since: data.created_at ?? at,
    };
    return { groupKey: id, alerts: [alert], omitted: 0, sentAt: at };
  });
};

const simple = z
  .object({
    name: words,
    status: optional(status),
    vm: text,
    summary: text,
    severity: text,
    description: text,
    runbook: z.unknown().optional(),
    graph: z.unknown().optional(),
    startsAt: optional(time),
    endsAt: optional(time),
    id: optional(words),
  })
  .refine((alert) => alert.startsAt ?? (alert.status === "resolved" && alert.endsAt), {
    path: ["startsAt"],
    message: "must be there; one that is resolved can have `endsAt` instead",
  });

const simpleGroup = z.object({ group: optional(words), alerts: z.array(z.unknown()) });

/** Reads Gatehouse's own format, for sources that speak none of the others. */
const readSimple: Read = (body) =>
  readDelivery(simpleGroup, body, (group) =>
    readEach(simple, group.alerts, (alerts) => ({
      groupKey: group.group ?? nameIn(group.alerts[0]) ?? alerts[0]?.name ?? "",
      omitted: 0,
      alerts: alerts.map(simpleAlert),
    })),
  );

/** The name of an alert that may be unreadable otherwise. */
const nameIn = (alert: unknown) => z.object({ name: words }).safeParse(alert).data?.name;

function simpleAlert({ name, vm = "", ...alert }: z.output<typeof simple>): Alert {
  const { startsAt, endsAt, description, runbook, graph } = alert;
  const at = startsAt ?? endsAt ?? 0;
  return {
    key: shortHash(alert.id ?? `${name} ${vm}`),
    at,
    ...(alert.status === "resolved" ? { endedAt: Math.max(0, endsAt ?? 0) } : {}),
    ...texts(name, alert.summary, alert.severity),
    ...extras({ description, runbook: [runbook], graph: [graph] }),
    vm: short(vm),
    since: at,
  };
}

const readers: Readonly<Record<AlertSource["format"], Read>> = {
  alertmanager: readGrouped("4"),
  grafana: readGrouped("1"),
  pagerduty: readIncident,
  plain: readSimple,
};

/** Reads a delivery in the source's format. Pure. */
export const readAlerts: Read = (body, source) => readers[source.format](body, source);

function readDelivery<T>(
  schema: z.ZodType<T>,
  body: unknown,
  then: (read: T) => Delivery | Unreadable,
): Delivery | Unreadable {
  const { data, error } = schema.safeParse(body);
  return data === undefined ? problemIn(error) : then(data);
}

/**
 * Reads the alerts of a delivery one by one, so that one that can't be read takes no other with it.
 * A delivery of which no alert can be read is refused.
 */
function readEach<T>(
  schema: z.ZodType<T>,
  alerts: readonly unknown[],
  then: (read: readonly T[]) => Delivery,
): Delivery | Unreadable {
  const all = alerts.map((alert) => ({ alert, ...schema.safeParse(alert) }));
  const read = all.flatMap(({ data }) => (data === undefined ? [] : [data]));
  const [first, ...others] = all.flatMap(({ alert, error }, n) =>
    error ? [{ alert, error, n }] : [],
  );
  if (!first) return then(read);
  const problem = problemIn(first.error, ["alerts", first.n]);
  if (read.length === 0) return problem;
  const open = [first, ...others].filter(({ alert }) => !hasEnded.safeParse(alert).success);
  const why = `${problem.field}: ${problem.text}`;
  const unreadable = { count: 1 + others.length, open: open.length, why };
  // What can't be read isn't missing, so a list with it is no complete one.
  return { ...then(read), isWhole: false, unreadable };
}

const hasEnded = z.object({ status: z.literal("resolved") });

function problemIn(error: z.ZodError | undefined, above: readonly PropertyKey[] = []): Unreadable {
  const [issue] = error?.issues ?? [];
  const field = short([...above, ...(issue?.path ?? [])].map(String).join("."));
  return { field: field || "the body", text: issue?.message ?? "is not as the format says" };
}

const short = (value: unknown, most = 200) => plain(typeof value === "string" ? value : "", most);

const texts = (name: unknown, summary: unknown, severity: unknown) => ({
  name: short(name) || "Alert",
  summary: short(summary, 300),
  severity: short(severity, 30),
});

/** Returns the optional details. Of several addresses, the first http(s) one counts. */
function extras({
  description,
  ...from
}: {
  description: unknown;
  runbook: readonly unknown[];
  graph: readonly unknown[];
}): Pick<Detail, "description" | "runbook" | "graph"> {
  const first = (all: readonly unknown[]) => all.map(webAddressIn).find(Boolean);
  const [more, runbook, graph] = [short(description, 300), first(from.runbook), first(from.graph)];
  return {
    ...(more ? { description: more } : {}),
    ...(runbook ? { runbook } : {}),
    ...(graph ? { graph } : {}),
  };
}

/** Slack takes 3,000 characters; a group keeps up to 200 addresses, so each is shorter. */
const mostInAddress = 1_000;

/**
 * The address of a web page. Undefined for everything else, such as `javascript:`, and for an
 * address with a password, which would be shown to the whole channel.
 */
function webAddressIn(value: unknown): string | undefined {
  if (typeof value !== "string" || value.length > mostInAddress) return undefined;
  const url = URL.parse(value.trim());
  if (!url || !["http:", "https:"].includes(url.protocol)) return undefined;
  if (url.username !== "" || url.password !== "") return undefined;
  return url.href.length <= mostInAddress ? url.href : undefined;
}

/** The value of the first of the source's VM labels that the alert has; empty when it has none. */
const vmIn = (all: Readonly<Record<string, unknown>>, { vm }: AlertSource) =>
  vm.map((label) => short(Object.hasOwn(all, label) ? all[label] : "")).find(Boolean) ?? "";
