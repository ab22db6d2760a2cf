import * as z from "zod";
import { defineRecord, objectOf } from "../../redis/define-record.ts";
import type { AlertGroup } from "./alert-group.ts";
import type { Alert, Delivery, Detail, UnreadableAlerts } from "./read-alerts.ts";

/** An event of a group. The card tells the first one, its thread the others. `vms` are labels. */
export interface AlertEvent {
  is: "fired" | "joined" | "ended";
  vms: readonly string[];
}

/** A VM as a label meant it first. */
export interface LabeledVm {
  label: string;
  id: string;
  /**
   * The VM's project when the label arrived. Only its people hear of the alert, also once the VM
   * is moved. Release 1.0.0-rc.1 stored none.
   */
  project?: { id: string; name: string } | undefined;
}

export interface AlertRecord {
  source: string;
  /**
   * The channel for the group, chosen when its first delivery came; empty if gatehouse.yml named
   * none then.
   */
  channelId: string;
  group: AlertGroup;
  /**
   * The VM of each label, by its ID when the label arrived, because names can be reused. A button
   * names a VM by its index here.
   */
  vms: readonly LabeledVm[];
  /** The newest events; `told` counts those before them. */
  events: readonly AlertEvent[];
  told: number;
  /** How often the group began to fire. */
  firings: number;
  /** When it last began to fire, or got more severe (ms by Redis). */
  urgentAt: number;
  /** IDs of requests made by the group's buttons, in order. */
  requests: readonly string[];
  /**
   * Set if the source has been silent for `quietMs`, or the reason why the group was taken as over
   * without its end.
   */
  silence?: Silence | undefined;
}

export type Silence = "quiet" | "unheard" | "source-removed";

const optionalText = z.string().exactOptional();
const optionalTime = z.number().exactOptional();

const detailMembers = {
  name: z.string(),
  summary: z.string(),
  severity: z.string(),
  description: optionalText,
  runbook: optionalText,
  graph: optionalText,
  vm: z.string(),
  since: z.number(),
};

const unreadable = objectOf<UnreadableAlerts>({
  count: z.number(),
  open: z.number(),
  why: z.string(),
}).exactOptional();

const delivery = objectOf<Delivery>({
  groupKey: z.string(),
  alerts: z.array(
    objectOf<Alert>({
      ...detailMembers,
      key: z.string(),
      at: z.number(),
      endedAt: optionalTime,
    }),
  ),
  omitted: z.number(),
  unreadable,
  isWhole: z.boolean().exactOptional(),
  sender: optionalText,
  sentAt: optionalTime,
  arrivedAt: optionalTime,
});

const group = objectOf<AlertGroup>({
  alerts: z.record(
    z.string(),
    objectOf<AlertGroup["alerts"][string]>({
      at: z.number(),
      endedAt: optionalTime,
      isEndUntold: z.literal(true).exactOptional(),
      overtookAt: optionalTime,
      isMissing: z.literal(true).exactOptional(),
      listedAt: optionalTime,
      detail: objectOf<Detail>(detailMembers).exactOptional(),
    }),
  ),
  omitted: z.number(),
  unreadable,
  told: objectOf<NonNullable<AlertGroup["told"]>>({
    heardAt: z.number(),
    sentAt: optionalTime,
    states: z.array(z.tuple([z.string(), z.number()])),
    senders: z.record(z.string(), z.string()),
    pauseMs: optionalTime,
  }).exactOptional(),
  held: z.array(z.looseObject({ from: z.number(), delivery })).exactOptional(),
});

export const alertRecord = defineRecord({
  name: "group of alerts",
  schema: objectOf<AlertRecord>({
    source: z.string(),
    channelId: z.string(),
    group,
    vms: z.array(
      objectOf<LabeledVm>({
        label: z.string(),
        id: z.string(),
        project: z.looseObject({ id: z.string(), name: z.string() }).exactOptional(),
      }),
    ),
    events: z.array(
      objectOf<AlertEvent>({
        is: z.enum(["fired", "joined", "ended"]),
        vms: z.array(z.string()),
      }),
    ),
    told: z.number(),
    firings: z.number(),
    urgentAt: z.number(),
    requests: z.array(z.string()),
    silence: z.enum(["quiet", "unheard", "source-removed"]).exactOptional(),
  }),
});
