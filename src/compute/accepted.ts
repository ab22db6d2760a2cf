import type { Accepted, NewProject, Project, Vm } from "./compute.ts";
import { isRecord, own } from "./body.ts";
import type { Good } from "./http.ts";
import { projectSchema, vmSchema } from "./schemas.ts";

/**
 * What the answer to an accepted change tells, if it tells anything: nothing here fails, because the service said yes
 * and the form of these answers isn't documented. A task looks much like a record, so a record counts only when it is
 * the one the call was about.
 */

/** The places where a record may stand: `{vm: …}`, `{data: {vm: …}}`, `{data: …}`, or the body itself. */
function candidates(good: Good, key: string): unknown[] {
  const json = typeof good.body === "string" ? undefined : good.body.json;
  const data = own(json, "data");
  return [own(json, key), own(data, key), data, json].filter(isRecord);
}

export function acceptedVm(good: Good, vmId: string): Accepted {
  const vm = candidates(good, "vm")
    .map((each) => vmSchema.safeParse(each).data)
    .find((each): each is Vm => each?.id === vmId);
  return { status: good.answer.status, ...(vm ? { vm } : {}) };
}

export function acceptedProject(good: Good, projectId: string): Accepted {
  const project = projects(good).find((each) => each.id === projectId);
  return { status: good.answer.status, ...(project ? { project } : {}) };
}

/** A new project has no id to know it by: its type and name are what was asked for. */
export function acceptedNewProject(good: Good, input: NewProject): Accepted {
  const project = projects(good).find(
    (each) => each.type === input.type && each.name === input.name,
  );
  return { status: good.answer.status, ...(project ? { project } : {}) };
}

function projects(good: Good): Project[] {
  return candidates(good, "project")
    .map((each) => projectSchema.safeParse(each).data)
    .filter((each) => each !== undefined);
}

/**
 * An id in the answer is the only proof that a snapshot was taken. `{snapshot_id}` or `{snapshot: {id}}` say what they
 * are; a bare `{id}` may be a task's or the VM's, and counts when the record bears the snapshot's name, or was created
 * (200, 201) and is nothing else.
 */
export function acceptedSnapshot(good: Good, vmId: string, name: string): Accepted {
  const { status } = good.answer;
  const snapshotId = candidates(good, "snapshot")
    .map((each) => snapshotIdIn(each, vmId, name, status))
    .find((id) => id !== undefined);
  const told = snapshotId ?? snapshotText(good);
  return { ...acceptedVm(good, vmId), ...(told === undefined ? {} : { snapshotId: told }) };
}

const notSnapshots = [
  "project_id",
  "ip_address",
  "specs",
  "task_id",
  "task",
  "operation",
  "operation_id",
  "job_id",
  "action",
];

function snapshotIdIn(
  record: unknown,
  vmId: string,
  name: string,
  status: number,
): string | undefined {
  const clear = idText(own(record, "snapshot_id")) ?? idText(own(record, "snapshotId"));
  if (clear !== undefined) return clear;
  const id = idText(own(record, "id"));
  if (id === undefined || id === vmId) return undefined;
  if (own(record, "name") === name) return id;
  const isOther =
    notSnapshots.some((key) => own(record, key) !== undefined) ||
    /task|operation|job/i.test(String(own(record, "type")));
  return isOther || status === 202 ? undefined : id;
}

/** `{snapshot: "snap-1"}`. */
function snapshotText(good: Good): string | undefined {
  const json = typeof good.body === "string" ? undefined : good.body.json;
  return idText(own(json, "snapshot")) ?? idText(own(own(json, "data"), "snapshot"));
}

function idText(value: unknown): string | undefined {
  if (typeof value === "number") return String(value);
  return typeof value === "string" && value !== "" ? value : undefined;
}
