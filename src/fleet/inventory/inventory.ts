import type { Project, Vm } from "../compute/compute.ts";

/** What resolving, lists, and pick-lists need. */
export type KnownProject = Omit<Project, "updatedAt" | "specs">;
export type KnownVm = Omit<Vm, "updatedAt" | "ipAddress" | "attestation"> & { projectName: string };

export type NameMatch<T> =
  | { found: T }
  /** Several have that name: the person picks, there is no default. */
  | { ambiguous: readonly T[] }
  /** The nearest names, for "did you mean". */
  | { unknown: readonly T[] };

export interface NotedRead {
  vm?: Vm;
  project?: Project;
  goneProjectId?: string;
}

export interface InventoryState {
  /** When the last complete refresh ended (Redis, ms), undefined before the first. */
  refreshedAt: number | undefined;
  /** It grows with every change that is written, whatever the clocks say. 0 before the first. */
  version: number;
  /** The last refresh failed or is overdue. */
  stale: boolean;
  vms: number;
  projects: number;
  /** Names of projects that the last refresh could not read. */
  unread: readonly string[];
  /** Only what a scope sees is told; there may be more. */
  isPart?: true | undefined;
  /** What the service gave only in part, or in a form that can't be read, for people; absent where it is whole. */
  gaps?: readonly string[] | undefined;
}

/** What of everything somebody may see. */
export interface Scope {
  /** Equal keys see equally. */
  key: string;
  sees(project: { id: string; name: string }): boolean;
}

/** Names of projects and VMs, shared through Redis; answers come from memory. */
export interface Inventory {
  /**
   * By id, name or `project/name`. Exact only: suggestions never resolve. What isn't known is looked for in the compute
   * service first, unless `onlyKnown`.
   */
  findVm(words: string, options?: { onlyKnown?: boolean }): Promise<NameMatch<KnownVm>>;
  findProject(words: string, options?: { onlyKnown?: boolean }): Promise<NameMatch<KnownProject>>;
  /**
   * Waits until what was there at the call is known, for `patience` (ms). Without it for 1.5 s at most, and not at all for a
   * large fleet, which isn't read again then.
   */
  upToDate(patience?: number): Promise<void>;
  /** VMs whose name, or `project/name` when the glob holds a slash, matches; `*` and `?` only. */
  matchVms(glob: string): Promise<readonly KnownVm[]>;
  suggestVms(typed: string, most?: number): Promise<readonly KnownVm[]>;
  suggestProjects(typed: string, most?: number): Promise<readonly KnownProject[]>;
  vms(filter?: { projectId?: string }): Promise<readonly KnownVm[]>;
  projects(): Promise<readonly KnownProject[]>;
  /** Adds what was just read, before the next refresh. */
  note(seen: NotedRead): Promise<void>;
  state(): Promise<InventoryState>;
  /**
   * The same without what the scope doesn't see, which is answered as if it didn't exist, in the same time. Everything for
   * undefined.
   */
  seenIn(scope: () => Promise<Scope | undefined>): Inventory;
  /**
   * The same for programs, which may ask each second: what they ask of it has the service read again every 10 s at most. What
   * Gatehouse has learned since, from requests that ended and from other processes, is in it at once.
   */
  forPrograms(): Inventory;
  /** Reads everything from the service now, unless another process is doing so. True when it completed. */
  refresh(): Promise<boolean>;
  /** Refreshes in the background until closed. */
  start(): void;
  close(): Promise<void>;
}
