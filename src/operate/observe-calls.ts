import { signOfService } from "../fleet/compute/compute.ts";
import type { CallReport } from "../fleet/compute/http.ts";
import type { LimitName, Telemetry } from "../log/telemetry.ts";
import { recordSpan } from "../log/traces.ts";
import type { DependencyProbe } from "../monitor/dependency-probe.ts";
import { signOfSlack } from "../slack/web.ts";
import type { CallTallies } from "./presence.ts";

/**
 * Counts and traces calls to Slack and to the compute service, reports them to the probe for
 * outages, and counts waits for Slack's limits.
 */
export function observeCalls({
  telemetry,
  watch,
  tallies,
}: {
  telemetry: Telemetry;
  watch: DependencyProbe;
  tallies: CallTallies;
}) {
  /** Records a call that just ended, with the name that it has in metrics. */
  function called(name: string, outcome: string, ms: number, status?: number): void {
    const endMs = Date.now();
    const attributes = { outcome, ...(status && { "http.response.status_code": status }) };
    const failed = outcome === "ok" ? undefined : outcome;
    recordSpan({ name, kind: "client", startMs: endMs - ms, endMs, attributes, failed });
  }

  return {
    slack(method: string, outcome: Parameters<typeof signOfSlack>[1], ms: number): void {
      telemetry.slackCalls.inc({ method, outcome });
      telemetry.slackSeconds.observe({ method }, ms / 1000);
      called(`slack ${method}`, outcome, ms);
      watch.countCall("slack", signOfSlack(method, outcome));
      tallies.countCall("slack", outcome === "ok" || outcome === "refused" ? undefined : outcome);
    },
    compute({ endpoint, kind, reason, durationMs, status }: CallReport): void {
      const outcome = kind ?? "ok";
      telemetry.computeCalls.inc({ endpoint, outcome });
      telemetry.computeSeconds.observe({ endpoint }, durationMs / 1000);
      called(endpoint, outcome, durationMs, status);
      watch.countCall("service", signOfService(endpoint, kind, reason));
      if (reason !== "aborted") tallies.countCall("service", howItFailed({ kind, status }));
    },
    wait(limit: LimitName, ms: number): void {
      if (ms > 0) telemetry.limitWaits.observe({ limit }, ms / 1000);
    },
  };
}

/**
 * How a call to the compute service failed, in a word. Undefined when the answer shows that the
 * service works.
 */
function howItFailed({
  kind,
  status,
}: {
  kind: CallReport["kind"];
  status: number | undefined;
}): string | undefined {
  if (kind === undefined) return undefined;
  const isTrouble = status === undefined || status >= 500 || [401, 403, 429].includes(status);
  if (isTrouble) return status === undefined ? kind : String(status);
  return kind === "unexpected" || kind === "unclear" ? kind : undefined;
}
