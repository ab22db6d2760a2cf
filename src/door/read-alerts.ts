import { hash } from "node:crypto";
import * as z from "zod";
import type { AlertSource } from "../config/policy-file.ts";
import { plain } from "../messages/message.ts";

/** One alert of a delivery: only what is shown of it, shortened. */
export interface Alert extends Detail {
  /** The same for each telling of one alert. */
  key: string;
  /** Which of two tellings is the later one (ms, by the clock of its source). */
  at: number;
  /** Undefined while it fires (ms). */
  endedAt?: number;
}

export interface Detail {
  name: string;
  summary: string;
  severity: string;
  /** As its label says; empty where it names none. */
  vm: string;
  since: number;
}

export interface Delivery {
  /** What its source groups by. */
  groupKey: string;
  alerts: readonly Alert[];
  /** Alerts of the group that its source left out. */
  omitted: number;
}

/** What is wrong, and in which field; never what stands there. */
export interface Unreadable {
  field: string;
  text: string;
}

type Labels = Readonly<Record<string, unknown>>;

const mostOfText = 300;
const mostOfLabel = 200;

export const shortHash = (...parts: readonly string[]) =>
  hash("sha256", JSON.stringify(parts), "base64url").slice(0, 12);

const time = z.string().transform((text, context) => {
  const at = Date.parse(text);
  if (Number.isNaN(at)) context.addIssue("must be a time like 2026-11-25T03:12:00Z");
  return at;
});
const labels = z.record(z.string(), z.unknown());
const count = z.number().int().min(0).max(1_000_000);

const grouped = z.object({
  version: z.string(),
  groupKey: z.string().min(1),
  truncatedAlerts: count.default(0),
  alerts: z.array(
    z.object({
      status: z.enum(["firing", "resolved"]),
      labels,
      annotations: labels.nullish(),
      startsAt: time,
      endsAt: time.optional(),
      fingerprint: z.string().min(1).optional(),
    }),
  ),
});

/** Alertmanager's (https://prometheus.io/docs/alerting/latest/configuration/#webhook_config), and Grafana's, which is made after it. */
const readGrouped = (version: string) => (body: unknown, source: AlertSource) =>
  read(
    grouped.extend({ version: z.literal(version) }),
    body,
    ({ groupKey, alerts, truncatedAlerts: omitted }) => ({
      groupKey,
      omitted,
      alerts: alerts.map((alert) => {
        const { status, labels: all, annotations, startsAt: at, endsAt = at } = alert;
        const { alertname, severity, priority } = all;
        const { summary, description, message } = annotations ?? {};
        return {
          key: shortHash(alert.fingerprint ?? JSON.stringify(Object.entries(all))),
          at,
          ...(status === "resolved" ? { endedAt: endsAt } : {}),
          ...detailOf(alertname, summary ?? description ?? message, severity ?? priority),
          vm: vmIn(all, source),
          since: at,
        };
      }),
    }),
  );

const named = z.object({ summary: z.string() }).nullish();
const incident = z.object({
  event: z.object({
    occurred_at: time,
    data: z.object({
      id: z.string().min(1),
      type: z.literal("incident"),
      status: z.string(),
      title: z.string(),
      created_at: time,
      incident_key: z.string().nullish(),
      urgency: z.string().nullish(),
      priority: named,
      service: named,
    }),
  }),
});
const otherEvent = z.object({ event: z.object({ data: z.object({ type: z.string() }) }) });

/** PagerDuty's (https://developer.pagerduty.com/docs/webhooks-overview): an incident is a group of one. */
function readIncident(body: unknown, source: AlertSource): Delivery | Unreadable {
  // A ping, a note: nothing that fires or ends
  const other = otherEvent.safeParse(body).data?.event.data.type;
  if (other !== undefined && other !== "incident") return { groupKey: "", alerts: [], omitted: 0 };
  return read(incident, body, ({ event: { occurred_at: at, data } }) => {
    const { id, title, status, created_at: since, incident_key, urgency } = data;
    const [service, priority] = [data.service?.summary, data.priority?.summary];
    const alert = {
      key: shortHash(id),
      at,
      ...(status === "resolved" ? { endedAt: at } : {}),
      ...detailOf(title, service, priority ?? urgency),
      vm: vmIn({ title, service, incident_key, urgency, priority }, source),
      since,
    };
    return { groupKey: id, alerts: [alert], omitted: 0 };
  });
}

const simple = z.object({
  group: z.string().min(1).optional(),
  alerts: z.array(
    z
      .object({
        name: z.string().min(1),
        status: z.enum(["firing", "resolved"]).default("firing"),
        vm: z.string().default(""),
        summary: z.string().default(""),
        severity: z.string().default(""),
        startsAt: time.optional(),
        endsAt: time.optional(),
        id: z.string().min(1).optional(),
      })
      .refine(({ status, startsAt, endsAt }) => startsAt ?? (status === "resolved" && endsAt), {
        path: ["startsAt"],
        message: "must be there; one that is resolved can have `endsAt` instead",
      }),
  ),
});

/** Our own, for whatever speaks none of the others (docs/doors.md). */
const readSimple = (body: unknown) =>
  read(simple, body, ({ group, alerts }) => ({
    groupKey: group ?? alerts[0]?.name ?? "",
    omitted: 0,
    alerts: alerts.map(({ name, status, vm, summary, severity, startsAt, endsAt, id }) => {
      const at = startsAt ?? endsAt ?? 0;
      const ended = status === "resolved" ? { endedAt: endsAt ?? at } : {};
      const detail = { ...detailOf(name, summary, severity), vm: shortLabel(vm), since: at };
      return { key: shortHash(id ?? `${name} ${vm}`), at, ...ended, ...detail };
    }),
  }));

const readers: Readonly<
  Record<AlertSource["format"], (body: unknown, source: AlertSource) => Delivery | Unreadable>
> = {
  alertmanager: readGrouped("4"),
  grafana: readGrouped("1"),
  pagerduty: readIncident,
  plain: readSimple,
};

/** What a source tells, in one form whatever its own is. Pure. */
export const readAlerts = (body: unknown, source: AlertSource): Delivery | Unreadable =>
  readers[source.format](body, source);

function read<T>(schema: z.ZodType<T>, body: unknown, then: (read: T) => Delivery) {
  const { data, error } = schema.safeParse(body);
  if (data !== undefined) return then(data);
  const [issue] = error?.issues ?? [];
  const field = plain(issue?.path.map(String).join(".") || "the body", mostOfLabel);
  return { field, text: issue?.message ?? "is not as the format says" };
}

const textOf = (value: unknown) => (typeof value === "string" ? value : "");

const detailOf = (name: unknown, summary: unknown, severity: unknown) => ({
  name: plain(textOf(name), mostOfLabel) || "Alert",
  summary: plain(textOf(summary), mostOfText),
  severity: plain(textOf(severity), 30),
});

const shortLabel = (value: unknown) => plain(textOf(value), mostOfLabel);

/** The first of the labels that name a VM which the alert has. */
function vmIn(all: Labels, { vm: wanted }: AlertSource): string {
  const has = wanted.find((label) => Object.hasOwn(all, label) && textOf(all[label]) !== "");
  return has === undefined ? "" : shortLabel(all[has]);
}
