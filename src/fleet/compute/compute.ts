import { UserError } from "../../errors.ts";
import * as z from "zod";
import { withZone } from "../../text/parse-time.ts";

/**
 * A 2xx answer to a change, with what its body says. The change was accepted, which doesn't mean
 * that it is done.
 */
export interface Accepted {
  status: number;
  vm?: Vm;
  project?: Project;
  snapshotId?: string;
}

/** Fields that are undefined aren't sent. */
type Given<T> = { [K in keyof T]?: T[K] | undefined };

export type WantedSpecs = Given<Specs>;

export interface NewProject {
  name: string;
  type: "TEE_VM" | "GIT_DEPLOY" | "CONTAINER";
  region: string;
  specs?: WantedSpecs;
  gitConfig?: Given<Record<"url" | "branch" | "buildCommand" | "startCommand", string>>;
}

export interface CallOptions {
  /**
   * Cancels the call. A change of which bytes may have been sent ends as `unclear`, anything else
   * as `unreachable`.
   */
  signal?: AbortSignal | undefined;
  /**
   * Called before a list is returned when anything in it is missing or can't be read. With this
   * option, a single record is also accepted in part; without it, such a record is `unexpected`.
   */
  onGaps?: ((gaps: ListGaps) => void) | undefined;
}

/**
 * A record without an ID of its own, or with the ID of another project. It can't be used for
 * anything.
 */
export interface LeftOut {
  /** The record's name, if it has one. */
  name: string | undefined;
  /** Which field is wrong, never its value: `id is missing`. */
  problem: string;
}

/**
 * How an answer falls short of what the service has. With gaps, a record that isn't in the list may
 * still exist.
 */
export interface ListGaps {
  leftOut: readonly LeftOut[];
  /**
   * IDs of records whose status, type, or name can't be read. The status or type is then
   * `unreadable`, and the name is the ID.
   */
  marked: readonly string[];
  /** The service has more records than it returned. */
  isCut: boolean;
}

/** Stands for a status or type that can't be read. Nothing may be concluded from it. */
export const unreadable = "UNREADABLE";

/**
 * Whether a project may have VMs. One whose type can't be read may, and its VMs must not get lost.
 */
export const mayHaveVms = ({ type }: { type: string }) => type === "TEE_VM" || type === unreadable;

/** Whether something with this name may exist although the list doesn't have it. */
export function mayHide(gaps: ListGaps | undefined, name: string): boolean {
  if (!gaps) return false;
  return (
    gaps.isCut ||
    gaps.leftOut.some(
      (unreadRecord) => unreadRecord.name === undefined || unreadRecord.name === name,
    )
  );
}

/** `1 record can't be read (web-2: id is missing)`. Undefined for a list without gaps. */
export function gapsWords({ leftOut, isCut }: ListGaps): string | undefined {
  const shown = leftOut
    .slice(0, 3)
    .map(({ name, problem }) => (name ? `${name}: ${problem}` : problem));
  const more = leftOut.length > shown.length ? [`${leftOut.length - shown.length} more`] : [];
  const records = leftOut.length === 1 ? "1 record" : `${leftOut.length} records`;
  const words = [
    ...(leftOut.length > 0 ? [`${records} can't be read (${[...shown, ...more].join("; ")})`] : []),
    ...(isCut ? ["the compute service has more than it gave"] : []),
  ];
  return words.length > 0 ? words.join("; ") : undefined;
}

/**
 * All endpoints of the compute service. Every call rejects with ComputeError, or with UserError for
 * an impossible ID; nothing was sent then. Reads are retried within a budget (4 attempts, full
 * jitter, 10% of calls); changes are sent at most once.
 */
export interface Compute {
  projects: {
    /**
     * Reads all pages, whatever per_page the service allows; at most `most` projects (default
     * 10,000).
     */
    listAll(most?: number, options?: CallOptions): Promise<Project[]>;
    get(projectId: string, options?: CallOptions): Promise<Project>;
    /** Reads all pages, if the service has pages here. */
    vms(projectId: string, options?: CallOptions): Promise<Vm[]>;
    create(input: NewProject, options?: CallOptions): Promise<Accepted>;
    update(
      projectId: string,
      change: { name?: string | undefined; specs?: WantedSpecs | undefined },
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
   * Returns a client that sends a change only if `mayGoOn` resolves to true; otherwise the change
   * is `unreachable`. It is asked once connected and before the first byte, because the process may
   * have been frozen since the call began.
   */
  onlyWhile(mayGoOn: () => Promise<boolean>): Compute;
  close(): Promise<void>;
}

/**
 * The endpoints as method and path template. This is the name of a call in errors, logs,
 * and metrics.
 */
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

/**
 * Letters, digits, and `._:~-`, beginning with a letter, a digit, or `_`. None of them has a
 * meaning in a path.
 */
const idPattern = /^[A-Za-z0-9_][A-Za-z0-9._:~-]{0,199}$/;

/** Accepts any visible ASCII, because a snapshot's ID is sent in a body and not in a path. */
export function checkSnapshotId(value: string): string {
  if (/^[\x21-\x7e]{1,200}$/.test(value)) return value;
  throw new UserError(
    "That can't be a snapshot ID",
    "IDs have no spaces and at most 200 characters",
  );
}

/**
 * The endpoint's path with the ID in its place. Throws UserError for a text that can't be an ID.
 */
export function fillPath(endpoint: Endpoint, id: string | undefined): string {
  const template = endpoint.slice(endpoint.indexOf(" ") + 1);
  return template.replace(/\{(\w+)_id\}/, (_, kind: string) => {
    if (typeof id === "string" && idPattern.test(id)) return encodeURIComponent(id);
    throw new UserError(
      `That can't be a ${kind === "vm" ? "VM" : kind} ID`,
      "IDs are letters, digits, and . _ : ~ - only, at most 200 characters",
    );
  });
}

/** The meaning of a status for a VM or a project. */
interface StatusFacts {
  sign: string;
  /** The position in lists: trouble comes first, then what is changing, stopped, and running. */
  rank: number;
  /** Whether a VM or a project stays in this status until someone changes it. */
  settledOf: readonly ("vm" | "project")[];
  isAlarming: boolean;
  isRunning: boolean;
  isStopped: boolean;
}

const never = { isAlarming: false, isRunning: false, isStopped: false };
const changing: StatusFacts = { sign: "🟡", rank: 1, settledOf: [], ...never };
const running: StatusFacts = { sign: "🟢", rank: 3, settledOf: [], ...never, isRunning: true };

/**
 * The documented statuses. Each command itself says in which of them it is offered, and which one
 * it leads to.
 */
const statuses = new Map<string, StatusFacts>([
  ["ERROR", { sign: "🔴", rank: 0, settledOf: ["vm", "project"], ...never, isAlarming: true }],
  ["CREATING", changing],
  ["REBOOTING", changing],
  ["DELETING", changing],
  ["STOPPED", { sign: "⚪", rank: 2, settledOf: ["vm", "project"], ...never, isStopped: true }],
  ["RUNNING", { ...running, settledOf: ["vm"] }],
  ["ACTIVE", { ...running, settledOf: ["project"] }],
]);

export const isKnownStatus = (status: string): boolean => statuses.has(status);

/**
 * An unknown status ("MIGRATING") never counts as settled: nothing is concluded from it, and no
 * change is sent during it.
 */
export function statusFacts(status: string): StatusFacts {
  return statuses.get(status) ?? { ...changing, sign: "❔" };
}

export const isSettledVmStatus = (status: string) => statusFacts(status).settledOf.includes("vm");

export function isSettledProjectStatus(status: string): boolean {
  return statusFacts(status).settledOf.includes("project");
}

/** True for CREATING, REBOOTING, DELETING, and any unknown status. */
export function isTransitional(status: string): boolean {
  return statusFacts(status).settledOf.length === 0;
}

/**
 * Milliseconds until the next poll: a quarter of the time waited so far, at least `firstMs` and at
 * most `maxMs`. So a result is seen at most a quarter late, and the number of polls grows with the
 * logarithm of the wait.
 */
export function nextPollDelay(times: Record<"firstMs" | "maxMs" | "sinceStartMs", number>): number {
  return Math.round(Math.min(times.maxMs, Math.max(times.firstMs, times.sinceStartMs / 4)));
}

/** The meaning of a failed call for its caller. */
export type ComputeErrorKind =
  | "refused" // The service refused (400, 401, 403, 405, 422): nothing happened.
  | "not-found" // 404.
  | "conflict" // 409: the current state doesn't allow it, or it exists already.
  | "busy" // 429: nothing happened; retry after `retryAfterMs`.
  // No byte of the request was sent (DNS, connection refused, TLS, connect timeout). For a read
  // also: there was no usable answer within the retry budget.
  | "unreachable"
  | "unclear" // Only for changes: it may or may not have happened.
  | "unexpected"; // Only for reads: something required is missing, or the answer isn't JSON.

const sights = {
  status: "it answered",
  redirect: "it answered with a redirect, which is never followed",
  dns: "its name could not be resolved",
  connect: "the connection was refused or there is no route to it",
  proxy: "the proxy opened no connection to it",
  "proxy-login": "the proxy refuses Gatehouse's user or password (407)",
  tls: "its certificate or the TLS handshake failed",
  "forbidden-address": "its name leads to an address that is not allowed",
  timeout: "no complete answer in time",
  reset: "the connection broke",
  truncated: "the answer was cut off",
  "too-large": "the answer was larger than allowed",
  encoding: "the answer is in a content encoding that Gatehouse can't read",
  aborted: "the call was canceled",
  answer: "the answer is not what the service documents",
  "says-failure": "it answered that the call failed, with a status that means success",
} as const;

/** The observation behind an error, for alarms and metrics. A redirect is never followed. */
export type ComputeErrorReason = keyof typeof sights;

/**
 * A failed call. The message names the endpoint and never contains a credential, an address, or a
 * body.
 */
export class ComputeError extends Error {
  override readonly name = "ComputeError";
  readonly kind: ComputeErrorKind;
  /** Method and path template, like `POST /v1/vms/{vm_id}/restart`. */
  readonly endpoint: string;
  /** The HTTP status, if there was an answer. */
  readonly status: number | undefined;
  /** The service's own words: plain text, at most 300 characters, untrusted. */
  readonly serviceMessage: string | undefined;
  /** From `Retry-After` (429 and 503). */
  readonly retryAfterMs: number | undefined;
  readonly reason: ComputeErrorReason | undefined;
  /** The key was refused (401), and there is a newer key by now. */
  readonly hasNewKey: boolean;

  constructor(kind: ComputeErrorKind, endpoint: string, message: string, detail: Detail = {}) {
    super(message, detail.cause === undefined ? undefined : { cause: detail.cause });
    this.kind = kind;
    this.endpoint = endpoint;
    this.status = detail.status;
    this.serviceMessage = detail.serviceMessage;
    this.retryAfterMs = detail.retryAfterMs;
    this.reason = detail.reason;
    this.hasNewKey = detail.hasNewKey ?? false;
  }
}

type DetailName = "status" | "serviceMessage" | "retryAfterMs" | "reason" | "hasNewKey";
type Detail = Partial<Pick<ComputeError, DetailName>> & { cause?: unknown };

/**
 * The read that shows whether the service is available. It is sent regularly, and a single broken
 * record doesn't make it fail.
 */
const controlRead = endpoints.listProjects;

/**
 * Whether a call shows that the service is available. `silence` is only no answer at all, or a 5xx
 * of the control read, because a 500 for one record says nothing about the rest. Undefined for a
 * canceled or unclear call, which shows neither.
 */
export function signOfService(
  endpoint: string,
  kind: ComputeErrorKind | undefined,
  reason: ComputeErrorReason | undefined,
): "answer" | "silence" | undefined {
  if (kind === "unclear" || reason === "aborted") return undefined;
  if (kind !== "unreachable") return "answer";
  const isOfOne = reason === "status" || reason === "answer";
  return isOfOne && endpoint !== controlRead ? undefined : "silence";
}

const meanings: Record<ComputeErrorKind, string> = {
  refused: "refused",
  "not-found": "not found",
  conflict: "its state does not allow it",
  busy: "too many requests",
  unreachable: "could not be reached",
  unclear: "it may or may not have happened",
  unexpected: "the answer can't be used",
};

/**
 * Describes in words for people a service that is `unreachable` or `busy`. A read is `aborted` when
 * its caller has waited long enough.
 */
export function unreachableWords({ kind, reason }: Pick<ComputeError, "kind" | "reason">): string {
  if (kind === "busy") return "takes no more calls for now (429)";
  const isSlow = reason === "timeout" || reason === "aborted";
  return isSlow ? "answers too slowly or not at all" : "can't be reached";
}

/**
 * The text of a ComputeError: the endpoint, the meaning, and what was observed. Nothing in it comes
 * from the answer's body.
 */
export function describeFailure(
  endpoint: string,
  kind: ComputeErrorKind,
  reason: ComputeErrorReason,
  status: number | undefined,
): string {
  const seen = status === undefined ? sights[reason] : `${sights[reason]} (${status})`;
  return `${endpoint}: ${meanings[kind]}: ${seen}`;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** An own property. `__proto__` and `constructor` in an answer are names like any other. */
export function own(value: unknown, key: string): unknown {
  return isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

/**
 * The service's name of a field: `created_at` for `createdAt`. Its names have at most one
 * underscore.
 */
export const wireName = (name: string) =>
  name.replace(/[A-Z]/, (letter) => `_${letter.toLowerCase()}`);

/**
 * A record of the service under our field names. An optional field that is null or has the wrong
 * type is left out, so that a missing field has only one form. Unknown enum values are kept.
 */
function record<Shape extends z.ZodRawShape>(shape: Shape) {
  const fields = Object.entries(shape).map(([name, schema]) => {
    const mayLack = schema instanceof z.ZodExactOptional;
    return { name, wire: wireName(name), mayLack, schema };
  });
  const toRecord = (value: unknown) => {
    if (!isRecord(value)) return value;
    const readRecord: Record<string, unknown> = {};
    for (const { name, wire, mayLack, schema } of fields) {
      const field = own(value, wire) ?? undefined;
      if (!mayLack || (field !== undefined && z.safeParse(schema, field).success))
        readRecord[name] = field;
    }
    return readRecord;
  };
  return z.preprocess(toRecord, z.object(shape));
}

const text = z.string().exactOptional();
const number = z.number().exactOptional();
/** The service's times are UTC, and may omit the zone. */
const instant = z.string().overwrite(withZone);
const time = instant.describe("ISO 8601").exactOptional();
const id = z.union([z.string().min(1), z.number().transform(String)]);

/** A record without a name gets its ID as its name. */
function named<T extends { id: string; name?: string }>(fields: T): T & { name: string } {
  return { ...fields, name: fields.name ?? fields.id };
}

const units = "as the compute service counts them: it names no units";
const specs = record({ cpu: number, memory: number, disk: number }).describe(units);
export type Specs = z.infer<typeof specs>;

const common = {
  id,
  name: text,
  status: z.string().min(1),
  region: text,
  createdAt: time,
  /** Not documented for VMs. Where present, it shows that something changed. */
  updatedAt: time,
  specs: specs.exactOptional(),
};

const attestation = record({ enabled: z.boolean().exactOptional(), measurement: text })
  .describe("what the compute service says of it")
  .exactOptional();
export const vmFields = { ...common, ipAddress: text, attestation };

export const vmSchema = record({ ...vmFields, projectId: id }).transform((vm) => named(vm));
export type Vm = z.infer<typeof vmSchema>;

/** A project's list of VMs may omit the project. */
const listed = record({ ...vmFields, projectId: id.exactOptional() });
export const listedVmSchema = listed.transform((vm) => named(vm));

export const projectFields = { ...common, type: z.string().min(1) };
export const projectSchema = record(projectFields).transform((project) => named(project));
export type Project = z.infer<typeof projectSchema>;

const sample = z.object({ timestamp: instant, value: z.number() });
const samples = z.preprocess(
  (all) => (Array.isArray(all) ? all.filter((each) => sample.safeParse(each).success) : []),
  z.array(sample),
);

export const metricsFields = { cpuUsage: samples, memoryUsage: samples, diskUsage: number };
export const metricsSchema = record(metricsFields);
export type Metrics = z.infer<typeof metricsSchema>;

export const attestationSchema = record({
  /** Base64. */
  report: text,
  measurement: text,
  verified: z.boolean().exactOptional(),
  timestamp: time,
  platform: record({ vendor: text, model: text, firmwareVersion: text }).exactOptional(),
});
export type AttestationReport = z.infer<typeof attestationSchema>;

/**
 * The address of a console is a secret that is never stored or logged, because it carries its own
 * token. Only secure WebSocket addresses are accepted.
 */
export const consoleSchema = record({
  url: z.string().refine((url) => URL.parse(url)?.protocol === "wss:"),
  expiresAt: time,
});
export type ConsoleSession = z.infer<typeof consoleSchema>;
