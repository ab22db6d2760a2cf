import { UserError } from "../errors.ts";
import type { AttestationReport, ConsoleSession, Metrics, Project, Specs, Vm } from "./records.ts";

export type { AttestationReport, ConsoleSession, Metrics, Project, Specs, Vm };

/** A 2xx answer to a change, with what its body told. Accepted is not done. */
export interface Accepted {
  status: number;
  vm?: Vm;
  project?: Project;
  snapshotId?: string;
}

export interface NewProject {
  name: string;
  type: "TEE_VM" | "GIT_DEPLOY" | "CONTAINER";
  region: string;
  specs?: Specs;
  gitConfig?: { url?: string; branch?: string; buildCommand?: string; startCommand?: string };
}

export interface CallOptions {
  /** Cancels the call. A change that was already on the wire ends as `unclear`, anything else as `unreachable`. */
  signal?: AbortSignal | undefined;
}

/**
 * All sixteen endpoints. Every call rejects with ComputeError, or with UserError for an impossible ID (nothing was sent
 * then). Reads are retried within a budget (4 tries, full jitter, 10% of calls); changes are sent at most once.
 */
export interface Compute {
  projects: {
    /** All pages, whatever per_page the service allows; at most `most` projects (default 10,000). */
    listAll(most?: number, options?: CallOptions): Promise<Project[]>;
    get(projectId: string, options?: CallOptions): Promise<Project>;
    /** Follows pages where the service has them. */
    vms(projectId: string, options?: CallOptions): Promise<Vm[]>;
    create(input: NewProject, options?: CallOptions): Promise<Accepted>;
    update(
      projectId: string,
      change: { name?: string; specs?: Specs },
      options?: CallOptions,
    ): Promise<Accepted>;
    delete(projectId: string, options?: CallOptions): Promise<Accepted>;
  };
  vms: {
    get(vmId: string, options?: CallOptions): Promise<Vm>;
    metrics(vmId: string, period: string, options?: CallOptions): Promise<Metrics>;
    attestation(vmId: string, options?: CallOptions): Promise<AttestationReport>;
    start(vmId: string, options?: CallOptions): Promise<Accepted>;
    stop(vmId: string, options?: CallOptions): Promise<Accepted>;
    restart(vmId: string, options?: CallOptions): Promise<Accepted>;
    resize(vmId: string, specs: Specs, options?: CallOptions): Promise<Accepted>;
    snapshot(vmId: string, name: string, options?: CallOptions): Promise<Accepted>;
    restore(vmId: string, snapshotId: string, options?: CallOptions): Promise<Accepted>;
    console(vmId: string, options?: CallOptions): Promise<ConsoleSession>;
  };
  /**
   * Changes are not sent (`unreachable`) unless `mayGoOn` resolves to true, asked once connected and before the first byte:
   * the caller may have been frozen.
   */
  onlyWhile(mayGoOn: () => Promise<boolean>): Compute;
  close(): Promise<void>;
}

/** The sixteen endpoints, as method and path template: the name of a call in errors, logs and metrics. */
export const endpoints = {
  listProjects: "GET /v1/projects",
  createProject: "POST /v1/projects",
  getProject: "GET /v1/projects/{project_id}",
  updateProject: "PATCH /v1/projects/{project_id}",
  deleteProject: "DELETE /v1/projects/{project_id}",
  listVms: "GET /v1/projects/{project_id}/vms",
  getVm: "GET /v1/vms/{vm_id}",
  startVm: "POST /v1/vms/{vm_id}/start",
  stopVm: "POST /v1/vms/{vm_id}/stop",
  restartVm: "POST /v1/vms/{vm_id}/restart",
  resizeVm: "PATCH /v1/vms/{vm_id}",
  vmMetrics: "GET /v1/vms/{vm_id}/metrics",
  vmAttestation: "GET /v1/vms/{vm_id}/attestation",
  openConsole: "POST /v1/vms/{vm_id}/console",
  takeSnapshot: "POST /v1/vms/{vm_id}/snapshots",
  restoreVm: "POST /v1/vms/{vm_id}/restore",
} as const;

export type Endpoint = (typeof endpoints)[keyof typeof endpoints];

export type Method = Endpoint extends `${infer M} ${string}` ? M : never;

export function methodOf(endpoint: Endpoint): Method {
  return endpoint.slice(0, endpoint.indexOf(" ")) as Method;
}

/** Letters, digits and `._:~-`, beginning with a letter, digit or `_`: nothing that means something in a path. */
const idPattern = /^[A-Za-z0-9_][A-Za-z0-9._:~-]{0,199}$/;

/** A snapshot's id travels in a body, so any visible ASCII will do. */
export function checkSnapshotId(value: string): string {
  if (/^[\x21-\x7e]{1,200}$/.test(value)) return value;
  throw new UserError(
    "That can't be a snapshot ID",
    "IDs have no spaces and at most 200 characters",
  );
}

/** The endpoint's path with the ID in its place. Throws UserError for one that can't be an ID. */
export function fillPath(endpoint: Endpoint, id: string | undefined): string {
  const template = endpoint.slice(endpoint.indexOf(" ") + 1);
  return template.replace(/\{(\w+)_id\}/, (_, what: string) => {
    if (typeof id === "string" && idPattern.test(id)) return encodeURIComponent(id);
    throw new UserError(
      `That can't be a ${what === "vm" ? "VM" : what} ID`,
      "IDs are letters, digits, and . _ : ~ - only, at most 200 characters",
    );
  });
}

/** What a status says of a VM or a project. */
interface StatusFacts {
  sign: string;
  /** In lists trouble comes first, then what is changing, stopped, running. */
  rank: number;
  /** What stays in it until someone changes it. */
  settledOf: readonly ("vm" | "project")[];
  isAlarming: boolean;
  isRunning: boolean;
  isStopped: boolean;
}

const never = { isAlarming: false, isRunning: false, isStopped: false };
const changing: StatusFacts = { sign: "🟡", rank: 1, settledOf: [], ...never };
const running: StatusFacts = { sign: "🟢", rank: 3, settledOf: [], ...never, isRunning: true };

/** The documented ones. In which of them a command is offered, and what it leads to, it says itself. */
const statuses = new Map<string, StatusFacts>([
  ["ERROR", { sign: "🔴", rank: 0, settledOf: ["vm", "project"], ...never, isAlarming: true }],
  ["CREATING", changing],
  ["REBOOTING", changing],
  ["DELETING", changing],
  ["STOPPED", { sign: "⚪", rank: 2, settledOf: ["vm", "project"], ...never, isStopped: true }],
  ["RUNNING", { ...running, settledOf: ["vm"] }],
  ["ACTIVE", { ...running, settledOf: ["project"] }],
]);

export function isKnownStatus(status: string): boolean {
  return statuses.has(status);
}

/** An unknown status ("MIGRATING") never counts as settled: nothing is concluded from it or sent on top of it. */
export function statusFacts(status: string): StatusFacts {
  return statuses.get(status) ?? { ...changing, sign: "❔" };
}

export function isSettledVmStatus(status: string): boolean {
  return statusFacts(status).settledOf.includes("vm");
}

export function isSettledProjectStatus(status: string): boolean {
  return statusFacts(status).settledOf.includes("project");
}

/** CREATING, REBOOTING, DELETING, and anything unknown. */
export function isTransitional(status: string): boolean {
  return statusFacts(status).settledOf.length === 0;
}

/**
 * Milliseconds until the next poll: a quarter of the time waited so far, at least `firstMs` and at most
 * `maxMs`: a result is seen at most a quarter late, and polls grow with the logarithm of the wait.
 */
export function nextPollDelay(waiting: {
  firstMs: number;
  maxMs: number;
  sinceStartMs: number;
}): number {
  const { firstMs, maxMs, sinceStartMs } = waiting;
  return Math.round(Math.min(maxMs, Math.max(firstMs, sinceStartMs / 4)));
}
