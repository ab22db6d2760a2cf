import { createHash } from "node:crypto";
import type { Target } from "../../registry/define.ts";
import { canonical } from "../../text/canonical-json.ts";

/** Everything that an approval covers: any change makes another fingerprint. */
export interface Approvable {
  id: string;
  command: string;
  input: Record<string, unknown>;
  target: Target;
  /** Deleted with the target: the VMs of a project. */
  children?: readonly Target[];
  /** The names that were shown of what the input names by ID. */
  labels?: Readonly<Record<string, string>>;
  /** Since then, all that a restore replaces was written. */
  snapshotAt?: number;
  /** The request that it undoes. */
  undoes?: string;
  requesterId: string;
  teamId: string;
  channelId: string;
  reason?: string;
  policyVersion: string;
  required: number;
  /** Who must approve, where a rule names them. */
  votes?: readonly { from: readonly string[]; required: number }[];
  /** Milliseconds, Redis time. */
  expiresAt: number;
  /** Facts the approver was shown (snapshot, measurements). */
  evidence?: unknown;
}

/** 64 hex digits: SHA-256 over canonical JSON. */
export function fingerprintOf(approvable: Approvable): string {
  return createHash("sha256").update(canonical(approvable)).digest("hex");
}

/** As much as a button and the card carry. */
export function shortFingerprint(digest: string): string {
  return digest.slice(0, 16);
}
