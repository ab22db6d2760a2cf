import { type ClosedChannels, closedIn } from "../../core/deliver/open-place.ts";
import type { Fields } from "../../redis/redis.ts";
import { shownIn } from "../../redis/shown.ts";
import { fires } from "./alert-group.ts";
import { type AlertRecord, type LabeledVm, alertRecord } from "./alert-record.ts";

export interface StoredAlert {
  id: string;
  record: AlertRecord;
  state: "firing" | "ended";
  revision: number;
  createdAt: number;
  changedAt: number;
  /** `formerShown`: what the former card shows since the card moved to another channel. */
  delivered: ReturnType<typeof shownIn> & { formerShown: string };
  closed: ClosedChannels;
}

/** Parses a stored group; undefined when it is gone or can't be read. */
export function parseAlert(id: string, fields: Fields): StoredAlert | undefined {
  const { alert, state } = fields;
  if (!alert || !state) return undefined;
  const record = alertRecord.parse(alert, id);
  return (
    record && {
      id,
      record,
      state: fires(record.group) ? "firing" : "ended",
      revision: Number(fields["revision"]),
      createdAt: Number(fields["createdAt"]),
      changedAt: Number(fields["changedAt"]),
      delivered: { ...shownIn(fields), formerShown: fields["former-shown"] ?? "" },
      closed: closedIn(fields),
    }
  );
}

/** A firing alert, as its source names it and its VM. */
export interface FiringAlert {
  key: string;
  name: string;
  label: string;
  /** Undefined when the label doesn't name exactly one VM. */
  vmId: string | undefined;
  /** The VM's project when the label arrived. */
  project?: LabeledVm["project"];
  since: number;
  /** When the source was last heard, if it has been silent for long. */
  quietSince?: number | undefined;
}
