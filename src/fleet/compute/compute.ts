import { UserError } from "../../errors.ts";
import * as z from "zod";
import { withZone } from "../../text/parse-time.ts";

/** A 2xx answer to a change, with what its body told. Accepted is not done. */
export interface Accepted {
  status: number;
  vm?: Vm;
  project?: Project;
  snapshotId?: string;
}

/** What is undefined isn't sent. */
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
  /** Cancels the call. A change that was already on the wire ends as `unclear`, anything else as `unreachable`. */
  signal?: AbortSignal | undefined;
  /**
   * Called before a list is returned, where anything in it is missing or can't be read. One record alone is read in part only
   * for who gives this, and without it is `unexpected`.
   */
  onGaps?: ((gaps: ListGaps) => void) | undefined;
}

/** A record without an ID of its own, or with that of another project: nothing can be said or done by it. */
export interface LeftOut {
  /** Its name, where the record says one. */
  name: string | undefined;
  /** Which field is wrong, never its value: `id is missing`. */
  problem: string;
}

/** How an answer falls short of what the service has. Nothing may be taken as gone because it is not in such a list. */
export interface ListGaps {
  leftOut: readonly LeftOut[];
  /** IDs of records whose status, type, or name can't be read: it is `unreadable`, the name is the ID. */
  marked: readonly string[];
  /** The service has more than it gave. */
  isCut: boolean;
}

/** What the status or type of a record counts as, where the service says none that can be read. Nothing follows from it. */
export const unreadable = "UNREADABLE";

/** A project whose type can't be read may have VMs: they must not be lost sight of. */
export const mayHaveVms = ({ type }: { type: string }) => type === "TEE_VM" || type === unreadable;

/** Whether something of this name may exist that the list doesn't show. */
export function mayHide(gaps: ListGaps | undefined, name: string): boolean {
  if (!gaps) return false;
  return gaps.isCut || gaps.leftOut.some((one) => one.name === undefined || one.name === name);
}

/** `1 record can't be read (web-2: id is missing)`; undefined for a list without gaps. */
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

export const isKnownStatus = (status: string): boolean => statuses.has(status);

/** An unknown status ("MIGRATING") never counts as settled: nothing is concluded from it or sent on top of it. */
export function statusFacts(status: string): StatusFacts {
  return statuses.get(status) ?? { ...changing, sign: "❔" };
}

export const isSettledVmStatus = (status: string) => statusFacts(status).settledOf.includes("vm");

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
export function nextPollDelay(times: Record<"firstMs" | "maxMs" | "sinceStartMs", number>): number {
  return Math.round(Math.min(times.maxMs, Math.max(times.firstMs, times.sinceStartMs / 4)));
}

/** What a failed call means for its caller. */
export type ComputeErrorKind =
  | "refused" // the service said no (400, 401, 403, 405, 422): nothing happened
  | "not-found" // 404
  | "conflict" // 409: its state doesn't allow it, or it exists already
  | "busy" // 429: nothing happened, retry after `retryAfterMs`
  // no byte of the request left (DNS, connection refused, TLS, connect timeout); of a read also: no usable answer within
  // the retry budget
  | "unreachable"
  | "unclear" // of changes only: it may or may not have happened
  | "unexpected"; // of reads: something required is missing, or it isn't JSON

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
} as const;

/** What was seen, for alarms and metrics. A redirect is never followed. */
export type ComputeErrorReason = keyof typeof sights;

/** A failed call. The message names the endpoint and never holds a credential, an address or a body. */
export class ComputeError extends Error {
  override readonly name = "ComputeError";
  readonly kind: ComputeErrorKind;
  /** Method and path template, e.g. `POST /v1/vms/{vm_id}/restart`. */
  readonly endpoint: string;
  /** HTTP status, when there was an answer. */
  readonly status: number | undefined;
  /** The service's own words: plain, at most 300 characters, untrusted. */
  readonly serviceMessage: string | undefined;
  /** From `Retry-After` (429 and 503). */
  readonly retryAfterMs: number | undefined;
  readonly reason: ComputeErrorReason | undefined;
  /** The key was refused (401), and meanwhile there is another one. */
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

/** Read all the time, and no single broken record makes it fail. */
const controlRead = endpoints.listProjects;

/**
 * Whether a call shows that the service is available. Silence is only no answer at all, or a 5xx of the control read: a 500
 * for one record shows nothing of the rest. A canceled or unclear call shows neither.
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

/** What an `unreachable` service does, in words for people. A read is `aborted` when its caller has waited long enough. */
export const unreachableWords = ({ reason }: ComputeError): string =>
  reason === "timeout" || reason === "aborted"
    ? "answers too slowly or not at all"
    : "can't be reached";

/** The text of a ComputeError: endpoint, meaning, what was seen. Nothing in it comes from the answer's body. */
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

/** An own property: `__proto__` and `constructor` from the wire are names like any other. */
export function own(value: unknown, key: string): unknown {
  return isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

/** The service's name of a field: `created_at` for `createdAt`. Its names have one underscore at most. */
export const wireName = (name: string) =>
  name.replace(/[A-Z]/, (letter) => `_${letter.toLowerCase()}`);

/**
 * A record of the service under our names. Of what may be missing, null or the wrong type counts as missing, and is left out:
 * "missing" has one form. Unknown enum values stay.
 */
function record<Shape extends z.ZodRawShape>(shape: Shape) {
  const fields = Object.entries(shape).map(([name, schema]) => {
    const mayLack = schema instanceof z.ZodExactOptional;
    return { name, wire: wireName(name), mayLack, schema };
  });
  const toRecord = (value: unknown) => {
    if (!isRecord(value)) return value;
    const told: Record<string, unknown> = {};
    for (const { name, wire, mayLack, schema } of fields) {
      const field = own(value, wire) ?? undefined;
      if (!mayLack || (field !== undefined && z.safeParse(schema, field).success))
        told[name] = field;
    }
    return told;
  };
  return z.preprocess(toRecord, z.object(shape));
}

const text = z.string().exactOptional();
const number = z.number().exactOptional();
/** The service's times are UTC, and need not say so. */
const instant = z.string().overwrite(withZone);
const time = instant.describe("ISO 8601").exactOptional();
const id = z.union([z.string().min(1), z.number().transform(String)]);

/** One without a name goes by its ID. */
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
  /** Of VMs not documented; a mark of change where present. */
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

/** A secret, never stored or logged: the address carries its own token. Secure WebSocket only. */
export const consoleSchema = record({
  url: z.string().refine((url) => URL.parse(url)?.protocol === "wss:"),
  expiresAt: time,
});
export type ConsoleSession = z.infer<typeof consoleSchema>;
