import type { KnownVm } from "../inventory/inventory.ts";
import type { Target } from "../registry/define.ts";
import type { DriftRecord } from "./drift-monitor.ts";

export interface RequestFact {
  id: string;
  command: string;
  /** "Restarted", as the command says it; or that its success can't be confirmed. */
  done: string;
  target: Target;
  /** A name: a digest mentions no one. */
  requester: string;
  state: string;
  /** The state as people read it. */
  stateWords: string;
  createdAt: number;
  changedAt: number;
  why?: string;
  approval?: { yes: number; required: number; expiresAt: number };
}

export interface ReviewFact {
  request: string;
  command: string;
  target: string;
  /** Undefined when the request is no longer kept. */
  on: Target | undefined;
  by: string;
  at: number;
}

export interface ConsoleFact {
  vm: string;
  vmId: string;
  /** User id. */
  by: string;
  until: number;
}

/** Functions, because requests/ is to the right. */
export interface RequestSource {
  open(): Promise<readonly RequestFact[]>;
  /** Newest first. */
  endedSince(at: number): Promise<readonly RequestFact[]>;
  reviews(): Promise<readonly ReviewFact[]>;
  /** Opened through Gatehouse and not expired. */
  consoles(now: number): Promise<readonly ConsoleFact[]>;
  /** Whether a sent request is open on this VM or its project, or ended after `since` (ms). */
  touched(vm: { id: string; projectId: string }, since: number): Promise<boolean>;
}

/** What could not be read is undefined and named in `unread`: never an empty list. */
export interface Facts {
  now: number;
  /** Changes are reported from here on. */
  since: number;
  vms?: readonly KnownVm[] | undefined;
  /** Since when a VM in trouble is in its status. */
  statusSince: ReadonlyMap<string, number>;
  refreshedAt?: number | undefined;
  stale: boolean;
  unreadProjects: readonly string[];
  drift?: readonly DriftRecord[] | undefined;
  open?: readonly RequestFact[] | undefined;
  ended?: readonly RequestFact[] | undefined;
  reviews?: readonly ReviewFact[] | undefined;
  /** Time of the newest known snapshot, by VM ID. */
  newestSnapshots?: ReadonlyMap<string, number> | undefined;
  unread: readonly string[];
  /** A VM in a transition for longer is stuck. */
  stuckAfterMs: number;
  snapshotOldMs: number;
}
