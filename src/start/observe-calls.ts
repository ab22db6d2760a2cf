import type { CallReport } from "../compute/http.ts";
import type { Spans } from "../log/spans.ts";
import type { LimitName, Telemetry } from "../log/telemetry.ts";
import type { RateLimiter } from "../slack/deliver/rate-limiter.ts";

interface Watchers {
  telemetry: Telemetry;
  spans: Spans | undefined;
}

/** What is counted, and traced, of calls to Slack and to the compute service, and of waits for Slack's limits. */
export function observeCalls({ telemetry, spans }: Watchers) {
  /** A call that just ended, named as its metrics are. */
  function called(name: string, outcome: string, ms: number, status?: number): void {
    const endMs = Date.now();
    const attributes = { outcome, ...(status && { "http.response.status_code": status }) };
    const failed = outcome === "ok" ? undefined : outcome;
    spans?.ended({ name, kind: "client", startMs: endMs - ms, endMs, attributes, failed });
  }

  function told(limit: LimitName, ms: number): void {
    if (ms > 0) telemetry.limitWaits.observe({ limit }, ms / 1000);
  }

  return {
    slack(method: string, outcome: string, ms: number): void {
      telemetry.slackCalls.inc({ method, outcome });
      telemetry.slackSeconds.observe({ method }, ms / 1000);
      called(`slack ${method}`, outcome, ms);
    },
    compute({ endpoint, kind, durationMs, status }: CallReport): void {
      const outcome = kind ?? "ok";
      telemetry.computeCalls.inc({ endpoint, outcome });
      telemetry.computeSeconds.observe({ endpoint }, durationMs / 1000);
      called(endpoint, outcome, durationMs, status);
    },
    limiter: (limiter: RateLimiter): RateLimiter => ({
      async post(channelId, turn) {
        const taken = await limiter.post(channelId, turn);
        // It doesn't wait, but joins others
        if (!turn.isJoining) told("slack-posts", taken.waitMs);
        return taken;
      },
      async edit(turn) {
        const taken = await limiter.edit(turn);
        told("slack-edits", taken.waitMs);
        return taken;
      },
      async pause(what, forMs) {
        told(what === "edit" ? "slack-edits" : "slack-posts", forMs);
        await limiter.pause(what, forMs);
      },
    }),
  };
}
