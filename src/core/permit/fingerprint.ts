import { createHash } from "node:crypto";
import type { Target } from "../../registry/define.ts";
import { canonical } from "../../text/canonical-json.ts";

/** Everything that an approval covers. Any change of it makes another fingerprint. */
export interface Approvable {
  id: string;
  command: string;
  input: Record<string, unknown>;
  target: Target;
  /** The VMs of a project, which are deleted with it. */
  children?: readonly Target[];
  /** The names that approvers were shown for IDs in the input. */
  labels?: Readonly<Record<string, string>>;
  /** When the snapshot to restore was taken (ms). Everything written since then is lost. */
  snapshotAt?: number;
  /** The request that this one undoes. */
  undoes?: string;
  requesterId: string;
  teamId: string;
  channelId: string;
  reason?: string;
  policyVersion: string;
  required: number;
  /** The people who must approve. */
  votes?: readonly { from: readonly string[]; required: number }[];
  /** Milliseconds, Redis time. */
  expiresAt: number;
  /** Facts that approvers were shown (snapshot, measurements). */
  evidence?: unknown;
}

/** Returns 64 hex digits: the SHA-256 of the canonical JSON. */
export function fingerprintOf(approvable: Approvable): string {
  return createHash("sha256").update(canonical(approvable)).digest("hex");
}

/** Returns the first 16 digits, which are on buttons and cards. */
export function shortFingerprint(digest: string): string {
  return digest.slice(0, 16);
}
