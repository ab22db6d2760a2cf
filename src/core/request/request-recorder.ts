import type { Log } from "../../log/log.ts";
import type { LimitName, Telemetry } from "../../log/telemetry.ts";
import { during, recordSpan, workOnRequest } from "../../log/traces.ts";
import type { RequestRecord } from "./record.ts";
import { type State, callOf, whyOf } from "./stage.ts";
import type { StoredRequest } from "./stored-request.ts";

interface Step {
  from: State | undefined;
  to: State;
  why: string;
  /** When it came into the state `from`, and when it left it (Redis, ms). */
  since: number;
  at: number;
  /** The person who did it, if one did. */
  by?: string | undefined;
  attempt?: number | undefined;
  worker?: string | undefined;
}

/** Writes what happened to a request to the log, the metrics, and the trace. */
export function requestRecorder({
  log,
  telemetry,
}: {
  log: Pick<Log, "info">;
  telemetry: Pick<Telemetry, "requests" | "settledSeconds" | "limitWaits">;
}) {
  function recordMove(record: RequestRecord, { from, since, at, ...step }: Step): void {
    const { command, target, requester, origin } = record;
    const work = workOnRequest(record);
    const rollout = origin.kind === "rollout" ? origin.rollout : undefined;
    const fields = {
      command,
      target: target.name,
      targetId: target.id,
      person: requester.id,
      rollout,
    };
    log.info("request.moved", { ...work.ids, ...fields, from: from ?? "", ...step });
    if (from === undefined) return;
    const attributes = { command, to: step.to, why: step.why };
    during(work, () =>
      recordSpan({ name: `request ${from}`, startMs: since, endMs: at, attributes }),
    );
  }

  function recordEnd(request: StoredRequest, from: State, at: number): void {
    const { record, state, stage } = request;
    const { command } = record;
    const call = callOf(stage);
    telemetry.requests.inc({ command, end: state });
    if (call && from !== "unknown")
      telemetry.settledSeconds.observe({ command }, Math.max(0, at - call.sentAt) / 1000);
    const attributes = {
      request: record.id,
      command,
      target: record.target.id,
      person: record.requester.id,
      end: state,
    };
    const failed = state === "failed" ? whyOf(stage) : undefined;
    during(workOnRequest(record), () =>
      recordSpan({ name: command, startMs: record.createdAt, endMs: at, attributes, failed }),
    );
  }

  function recordWait(limit: LimitName, ms: number): void {
    if (ms > 0) telemetry.limitWaits.observe({ limit }, ms / 1000);
  }

  return { recordMove, recordEnd, recordWait };
}
