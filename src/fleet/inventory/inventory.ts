import type { Project, Vm } from "../compute/compute.ts";

/** The parts of projects and VMs that name resolution, lists, and pickers need. */
export type KnownProject = Omit<Project, "updatedAt" | "specs">;
export type KnownVm = Omit<Vm, "updatedAt" | "ipAddress" | "attestation"> & { projectName: string };

export type NameMatch<T> =
  | { record: T }
  /** Several have that name. The person must choose; there is no default. */
  | { ambiguous: readonly T[] }
  /** The nearest names, for "did you mean". */
  | { unknown: readonly T[] };

export interface NotedRead {
  vm?: Vm;
  project?: Project;
  goneProjectId?: string;
}

export interface InventoryState {
  /** When the last complete refresh ended (Redis time, ms). Undefined before the first. */
  refreshedAt: number | undefined;
  /** Grows with every change that is written, whatever the clocks say. 0 before the first. */
  version: number;
  /** The last refresh failed or is overdue. */
  stale: boolean;
  vms: number;
  projects: number;
  /** Names of projects that the last refresh could not read. */
  unread: readonly string[];
  /**
   * The gaps: things that the service returned only in part, or in a form that can't be read. In
   * words for people; absent when everything is complete.
   */
  gaps?: readonly string[] | undefined;
}

/** The part of the fleet that somebody may see. */
export interface Scope {
  /** Scopes with equal keys see the same. */
  key: string;
  sees(project: { id: string; name: string }): boolean;
}

/** Names of projects and VMs, shared through Redis. Answers come from memory. */
export interface Inventory {
  /**
   * Finds a VM by ID, name, or `project/name`. The match must be exact; suggestions are never used
   * as a result. Something unknown is first looked for in the compute service, unless `onlyKnown`
   * is set, which suggests nothing either: many labels of a storm of alerts name no VM.
   */
  findVm(words: string, options?: { onlyKnown?: boolean }): Promise<NameMatch<KnownVm>>;
  findProject(words: string, options?: { onlyKnown?: boolean }): Promise<NameMatch<KnownProject>>;
  /**
   * Waits at most `patience` (ms) until everything that existed at the time of the call is known.
   * Without `patience` it waits at most 1.5 s, and not at all for a large fleet, which isn't read
   * again then.
   */
  upToDate(patience?: number): Promise<void>;
  /**
   * VMs whose name matches the glob, or whose `project/name` does when the glob has a slash. Only
   * `*` and `?` are special.
   */
  matchVms(glob: string): Promise<readonly KnownVm[]>;
  suggestVms(typed: string, most?: number): Promise<readonly KnownVm[]>;
  suggestProjects(typed: string, most?: number): Promise<readonly KnownProject[]>;
  vms(filter?: { projectId?: string }): Promise<readonly KnownVm[]>;
  projects(): Promise<readonly KnownProject[]>;
  /** Adds what was just read, without waiting for the next refresh. */
  note(seen: NotedRead): Promise<void>;
  state(): Promise<InventoryState>;
  /**
   * Returns this inventory restricted to a scope. Anything outside of the scope is answered as if
   * it didn't exist, and in the same time. Undefined means no restriction.
   */
  seenIn(scope: () => Promise<Scope | undefined>): Inventory;
  /**
   * Returns this inventory for programs, which may ask every second. Their questions cause a read
   * of the service at most every 10 s. Anything that Gatehouse has learned since then, from ended
   * requests and from other processes, is included at once.
   */
  forPrograms(): Inventory;
  /**
   * Reads everything from the service now, unless another refresh is running in this process.
   * Resolves with true when it completed.
   */
  refresh(): Promise<boolean>;
  /** Refreshes in the background until closed. */
  start(): void;
  close(): Promise<void>;
}
