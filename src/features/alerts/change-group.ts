import {
  type AlertGroup,
  detailsOf,
  emptyGroup,
  fires,
  firingIn,
  isFiring,
} from "./alert-group.ts";
import type { AlertEvent, AlertRecord } from "./alert-record.ts";
import { severityRank } from "./severity-rank.ts";

const mostEvents = 30;
/** The most names of alerts, and of VMs, in a record of the audit trail. */
const mostRecorded = 3;

/** The record with this group and with the events that its thread must tell. */
export function withGroup<T extends Omit<AlertRecord, "group">>(
  record: T,
  was: AlertGroup = emptyGroup,
  group: AlertGroup,
  at: number,
) {
  const news = eventsOf(was, group);
  const all = [...record.events, ...news];
  const events = all.slice(-mostEvents);
  const begins = news.filter(({ is: kind }) => kind === "fired").length;
  const isUrgent = begins > 0 || rankOf(group) > rankOf(was);
  return {
    ...record,
    group,
    events,
    told: record.told + all.length - events.length,
    firings: record.firings + begins,
    urgentAt: isUrgent ? at : record.urgentAt,
  };
}

/** How severe the worst alert is that fires; 0 for none. */
const rankOf = (group: AlertGroup): number =>
  Math.max(
    0,
    ...detailsOf(group).map((detail) => (isFiring(detail) ? severityRank(detail.severity) : 0)),
  );

function eventsOf(before: AlertGroup, after: AlertGroup): AlertEvent[] {
  const [was, firingNow] = [before, after].map((group) =>
    detailsOf(group).flatMap((detail) => (isFiring(detail) && detail.vm !== "" ? detail.vm : [])),
  );
  const vms = [...new Set(firingNow)].filter((vm) => !was?.includes(vm));
  if (!fires(before)) return fires(after) ? [{ is: "fired", vms }] : [];
  if (!fires(after)) return [{ is: "ended", vms: [] }];
  return vms.length > 0 ? [{ is: "joined", vms }] : [];
}

/** The record of a group for the audit trail, with the first of its alerts and VMs. */
export function auditOf(id: string, { source, group }: AlertRecord) {
  const details = detailsOf(group);
  const first = (texts: readonly string[]) =>
    [...new Set(texts)].filter((text) => text !== "").slice(0, mostRecorded);
  return {
    what: "alert",
    source,
    alert: id,
    firing: firingIn(group),
    alerts: first(details.map((detail) => detail.name)),
    on: first(details.map((detail) => detail.vm)),
  };
}
