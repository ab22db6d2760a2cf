import * as z from "zod";
import { duration, section } from "./policy-values.ts";

/** How long things take or may take, in milliseconds. In gatehouse.yml without `Ms`, as `15s`, `2m`, `1h`. */
export interface Timing {
  /** One call to the compute service. */
  readonly httpTimeoutMs: number;
  /** From an unclear send until a read counts: 2 s + httpTimeout + the longest delay seen until an effect shows. */
  readonly quiesceMs: number;
  /** From a send until its target must have settled; afterwards the outcome is unknown. */
  readonly settleDeadlineMs: number;
  /** An authorised request that wasn't sent for so long expires. */
  readonly staleAfterMs: number;
  /** How long an approval may be waited for, where its rule doesn't say. */
  readonly approvalExpiresMs: number;
  /** From a send until the sign that it began (REBOOTING, a moved timestamp) must have been seen. */
  readonly restartMarkMs: number;
  /** The first poll of a target that is waited for, and the longest time between two. */
  readonly pollFirstMs: number;
  readonly pollMostMs: number;
  /** Two equal reads so far apart are stable. */
  readonly stableGapMs: number;
  /** From a claim until its bytes must have left. */
  readonly claimWindowMs: number;
  /** How often a process says that it lives. */
  readonly heartbeatMs: number;
  /** How often open requests without a job are looked for. */
  readonly sweepMs: number;
  /** A job that proves that the queue moves. */
  readonly canaryMs: number;
  /** What Slack, Redis or the service were away for less than this is a hiccup: no recap tells of it. */
  readonly outageMs: number;
  /** How long groups and people are remembered. */
  readonly peopleCacheMs: number;
  readonly inventoryRefreshMs: number;
  /** How often VMs that a pin speaks of are attested. */
  readonly driftWatchMs: number;
  /** After which ages an unknown outcome is brought up again. */
  readonly remindersMs: readonly number[];
}

const lasting = (text: string) => duration.prefault(text);

export const timing = section({
  httpTimeout: lasting("15s"),
  quiesce: lasting("60s"),
  settleDeadline: lasting("15m"),
  staleAfter: lasting("10m"),
  approvalExpires: lasting("15m"),
  restartMark: lasting("2m"),
  pollFirst: lasting("1s"),
  pollMost: lasting("10s"),
  stableGap: lasting("2s"),
  claimWindow: lasting("2s"),
  heartbeat: lasting("3s"),
  sweep: lasting("10s"),
  canary: lasting("60s"),
  outage: lasting("30s"),
  peopleCache: lasting("60s"),
  inventoryRefresh: lasting("60s"),
  driftWatch: lasting("15m"),
  reminders: z.array(duration).prefault(["15m", "1h", "4h"]),
}).transform((read): Timing => ({
  httpTimeoutMs: read.httpTimeout,
  quiesceMs: read.quiesce,
  settleDeadlineMs: read.settleDeadline,
  staleAfterMs: read.staleAfter,
  approvalExpiresMs: read.approvalExpires,
  restartMarkMs: read.restartMark,
  pollFirstMs: read.pollFirst,
  pollMostMs: read.pollMost,
  stableGapMs: read.stableGap,
  claimWindowMs: read.claimWindow,
  heartbeatMs: read.heartbeat,
  sweepMs: read.sweep,
  canaryMs: read.canary,
  outageMs: read.outage,
  peopleCacheMs: read.peopleCache,
  inventoryRefreshMs: read.inventoryRefresh,
  driftWatchMs: read.driftWatch,
  remindersMs: read.reminders,
}));
