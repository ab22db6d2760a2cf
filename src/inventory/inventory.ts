import type { Project, Vm } from "../compute/compute.ts";

/** A VM as the inventory remembers it: what resolving, lists and pick-lists need. */
export interface KnownVm {
  id: string;
  name: string;
  projectId: string;
  projectName: string;
  status: string;
  region?: string;
  createdAt?: string;
  specs?: { cpu?: number; memory?: number; disk?: number };
}

export interface KnownProject {
  id: string;
  name: string;
  type: string;
  status: string;
  region?: string;
  createdAt?: string;
}

export type Found<T> =
  | { found: T }
  /** More than one bears that name: the person picks, there is no default. */
  | { ambiguous: readonly T[] }
  /** None does: these are the nearest, for "did you mean". */
  | { unknown: readonly T[] };

export interface InventoryState {
  /** When the last complete refresh ended (ms), undefined before the first. */
  refreshedAt: number | undefined;
  /** The last refresh failed or is overdue: what is shown may be old. */
  stale: boolean;
  vms: number;
  projects: number;
  /** Names of projects that the last refresh could not read. */
  unread: readonly string[];
}

/** Names of projects and VMs, in Redis, the same for all processes; answers come from memory. */
export interface Inventory {
  /** By id, name or `project/name`. Exact only: suggestions never resolve. */
  findVm(words: string): Promise<Found<KnownVm>>;
  findProject(words: string): Promise<Found<KnownProject>>;
  /** VMs whose name, or `project/name` when the glob holds a slash, matches; `*` and `?` only. */
  matchVms(glob: string): Promise<readonly KnownVm[]>;
  suggestVms(typed: string, most?: number): Promise<readonly KnownVm[]>;
  suggestProjects(typed: string, most?: number): Promise<readonly KnownProject[]>;
  vms(filter?: { projectId?: string; status?: string }): Promise<readonly KnownVm[]>;
  projects(): Promise<readonly KnownProject[]>;
  /** Takes over what was just read, so that lists are right without waiting for the next refresh. */
  note(seen: {
    vm?: Vm;
    project?: Project;
    goneVmId?: string;
    goneProjectId?: string;
  }): Promise<void>;
  state(): Promise<InventoryState>;
  /** Reads everything from the service now, if no other process is doing so. True when it ran to the end. */
  refresh(): Promise<boolean>;
  /** Refreshes in the background until closed. */
  start(): void;
  close(): Promise<void>;
}
