import { createHash } from "node:crypto";
import type { Target } from "../registry/target.ts";
import { canonical } from "../canonical.ts";

/** Everything that an approval covers. What isn't in here can't be approved, and any change makes another digest. */
export interface Approvable {
  id: string;
  command: string;
  input: Record<string, unknown>;
  target: Target;
  /** What goes with the target: the VMs of a project that is deleted. */
  children?: readonly Target[];
  requesterId: string;
  teamId: string;
  channelId: string;
  reason?: string;
  policyVersion: string;
  required: number;
  /** Milliseconds, Redis time. */
  expiresAt: number;
  /** Facts the approver was shown (snapshot, measurements). */
  evidence?: unknown;
}

/** 64 hex digits: SHA-256 over canonical JSON. */
export function digestOf(approvable: Approvable): string {
  return createHash("sha256").update(canonical(approvable)).digest("hex");
}

/** What a button and the card carry of it. */
export const digestShownLength = 16;

export function shortDigest(digest: string): string {
  return digest.slice(0, digestShownLength);
}
