import type { KnownVm } from "../inventory/inventory.ts";
import type { Target } from "../registry/target.ts";
import type { DriftRecord } from "./drift-records.ts";

/** A request as a digest tells of it. */
export interface RequestFact {
  id: string;
  command: string;
  target: Target;
  /** For reading: a digest mentions nobody. */
  requester: string;
  state: string;
  createdAt: number;
  changedAt: number;
  why?: string;
  approval?: { yes: number; required: number; expiresAt: number };
}

export interface ReviewFact {
  request: string;
  command: string;
  target: string;
  by: string;
  at: number;
}

export interface ConsoleFact {
  vm: string;
  /** User id. */
  by: string;
  until: number;
}

/** What is known of requests; requests stand to the right, so they come in as functions. */
export interface RequestSource {
  open(): Promise<readonly RequestFact[]>;
  /** Newest first. */
  endedSince(at: number): Promise<readonly RequestFact[]>;
  reviews(): Promise<readonly ReviewFact[]>;
  /** Consoles that were opened from here and are still good. */
  consoles(now: number): Promise<readonly ConsoleFact[]>;
  /** Whether a request of ours that was sent is open on this VM or its project, or ended after `since` (ms). */
  touched(vm: { id: string; projectId: string }, since: number): Promise<boolean>;
}

/** Everything a digest is made of. What could not be read is undefined, and named in `unread`: never an empty list. */
export interface Facts {
  now: number;
  /** What changed is told from here on. */
  since: number;
  vms?: readonly KnownVm[];
  /** Since when a VM in trouble is in its status. */
  statusSince: ReadonlyMap<string, number>;
  refreshedAt?: number;
  stale: boolean;
  unreadProjects: readonly string[];
  drift?: readonly DriftRecord[];
  open?: readonly RequestFact[];
  ended?: readonly RequestFact[];
  reviews?: readonly ReviewFact[];
  /** Time of the newest snapshot we know, by VM id. */
  newestSnapshots?: ReadonlyMap<string, number>;
  unread: readonly string[];
  /** A VM in a transition for longer is stuck. */
  stuckAfterMs: number;
  snapshotOldMs: number;
}
