import type { Pace } from "../../../src/config/policy-schema.ts";
import { policyWith } from "../../support/start-world.ts";

/**
 * The durations of the fault suite (ms): production's, scaled down, in the same order. The quiet period (`quiesce`) stays
 * longer than a freeze and a call together, as in production: sooner, reads would prove nothing.
 */
export interface Timing {
  httpTimeout: number;
  quiesce: number;
  settleDeadline: number;
  restartMark: number;
  claimWindow: number;
  heartbeat: number;
  staleAfter: number;
  approvalExpires: number;
  outage: number;
  driftWatch?: number;
}

/** For single rows: one fault at a time, none freezes for longer than 300 ms unless it says so (ms). */
export const rowTiming: Timing = {
  httpTimeout: 500,
  quiesce: 1300,
  settleDeadline: 4000,
  restartMark: 1200,
  claimWindow: 300,
  heartbeat: 200,
  staleAfter: 60_000,
  approvalExpires: 60_000,
  outage: 30_000,
};

/** For the campaign: freezes last up to `longestFreezeMs`. */
export const longestFreezeMs = 2500;
export const campaignTiming: Timing = {
  ...rowTiming,
  httpTimeout: 800,
  quiesce: longestFreezeMs + 1500,
  // As many quiet periods as in production: a slow machine needs some to read everything
  settleDeadline: 60_000,
  restartMark: 2500,
  claimWindow: 600,
  staleAfter: 60_000,
  approvalExpires: 40_000,
};

/** Slack's limits, scaled: one message per 60 ms and channel instead of one per second, edits likewise. */
export const fastSlack = {
  posts: { interval: 60, burst: 20, reserve: 2 },
  edits: { interval: 25, burst: 40, reserve: 8 },
};

/** What gatehouse.yml doesn't say. */
export const paceOf = ({ restartMark, claimWindow, heartbeat }: Timing): Pace => ({
  restartMarkMs: restartMark,
  claimWindowMs: claimWindow,
  heartbeatMs: heartbeat,
  pollFirstMs: 25,
  pollMostMs: 200,
  stableGapMs: 50,
  transitionGapMs: 50,
  sweepMs: 250,
  editMs: 4_000,
  messageRetryMs: 3_000,
  remedyMs: 300_000,
  inventoryRefreshMs: 5_000,
  inventoryAgainMs: 250,
  peopleCacheMs: 1_000,
});

const ofPace = new Set(["restartMark", "claimWindow", "heartbeat"]);

/** The gatehouse.yml of the fault suite; a row adds `more` sections. */
export function faultPolicy(durations: Timing, more = ""): string {
  const scaled = Object.entries(durations).flatMap(([name, ms]) =>
    ofPace.has(name) ? [] : [[name, `${ms}ms`]],
  );
  return policyWith(
    {
      breakGlass: [],
      audit: undefined,
      alerts: undefined,
      sharedChannels: undefined,
      timing: Object.fromEntries(scaled),
    },
    `limits: { requestsPerMinute: 10000, draftsPerPerson: 10000, destructivePerHour: 10000 }
${more}`,
  );
}
