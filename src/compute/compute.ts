/**
 * The Confidential Compute Service as Gatehouse sees it: all sixteen endpoints, in camelCase.
 * Enum values the service may grow are plain strings: an unknown one is shown as it is.
 */

export type VmStatus = "CREATING" | "RUNNING" | "STOPPED" | "REBOOTING" | "ERROR" | "DELETING";
export type ProjectStatus = "CREATING" | "ACTIVE" | "STOPPED" | "ERROR" | "DELETING";
export type ProjectType = "TEE_VM" | "GIT_DEPLOY" | "CONTAINER";

/** Units are not documented by the service: numbers are shown as they come. */
export interface Specs {
  cpu?: number;
  memory?: number;
  disk?: number;
}

export interface Vm {
  id: string;
  projectId: string;
  name: string;
  status: string;
  region?: string;
  specs?: Specs;
  ipAddress?: string;
  createdAt?: string;
  /** Not documented, used as a mark of change when it is there. */
  updatedAt?: string;
  attestation?: { enabled?: boolean; measurement?: string };
}

export interface Project {
  id: string;
  name: string;
  type: string;
  status: string;
  region?: string;
  createdAt?: string;
  updatedAt?: string;
  /** Shown by some detail records. */
  specs?: Specs;
}

export interface ProjectPage {
  projects: Project[];
  total?: number;
  page?: number;
  perPage?: number;
}

export interface Sample {
  timestamp: string;
  value: number;
}

export interface Metrics {
  cpuUsage: Sample[];
  memoryUsage: Sample[];
  diskUsage?: number;
}

export interface AttestationReport {
  /** Base64. */
  report?: string;
  measurement?: string;
  verified?: boolean;
  timestamp?: string;
  platform?: { vendor?: string; model?: string; firmwareVersion?: string };
}

/** A secret: the address carries its own token. Never stored, never logged. */
export interface ConsoleSession {
  url: string;
  expiresAt?: string;
}

/**
 * A 2xx answer to a call that changes something. Accepted is not done. What the body told, if anything:
 * the record as it is now, the id of a snapshot, a task.
 */
export interface Accepted {
  status: number;
  vm?: Vm;
  project?: Project;
  snapshotId?: string;
}

export interface GitConfig {
  url?: string;
  branch?: string;
  buildCommand?: string;
  startCommand?: string;
}

export interface NewProject {
  name: string;
  type: ProjectType;
  region: string;
  specs?: Specs;
  gitConfig?: GitConfig;
}

export interface ProjectFilter {
  type?: string;
  status?: string;
  page?: number;
  perPage?: number;
}

export interface CallOptions {
  /** Gives the call up. A change that was already on the wire ends as `unclear`, anything else as `unreachable`. */
  signal?: AbortSignal | undefined;
}

export interface ReadOptions extends CallOptions {
  /** Told when the answer is here but not yet made sense of: its connection can do something else. */
  onAnswer?: (() => void) | undefined;
}

export interface ListOptions extends CallOptions {
  /** Told of new projects while further pages are on their way, so that work on them may begin; each comes once. */
  onPage?: ((projects: readonly Project[]) => void) | undefined;
}

/**
 * Every call rejects with ComputeError, or with UserError when an id can't be one (nothing was sent then). Reads are
 * retried within a budget (4 tries, full jitter, 10 % of calls); calls that change something are sent at most once.
 */
export interface Compute {
  projects: {
    list(filter?: ProjectFilter, options?: CallOptions): Promise<ProjectPage>;
    /** All pages, whatever per_page the service allows; at most `most` projects (default 10,000). */
    listAll(
      filter?: Omit<ProjectFilter, "page" | "perPage">,
      most?: number,
      options?: ListOptions,
    ): Promise<Project[]>;
    get(projectId: string, options?: CallOptions): Promise<Project>;
    /** Follows pages where the service has them. */
    vms(projectId: string, options?: CallOptions): Promise<Vm[]>;
    /** The same, but an answer that is byte for byte the one that `mark` names is not read again. */
    vmsUnless(
      mark: string | undefined,
      projectId: string,
      options?: ReadOptions,
    ): Promise<{ vms: Vm[]; mark?: string | undefined } | "same">;
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
   * The same service; a change is not sent (`unreachable`) when `mayGoOn` says no as soon as its connection stands. For a
   * caller that may have been frozen since it decided.
   */
  onlyWhile(mayGoOn: () => boolean): Compute;
  close(): Promise<void>;
}
