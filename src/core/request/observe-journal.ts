import type { Log } from "../../log/log.ts";
import type { LimitName, Telemetry } from "../../log/telemetry.ts";
import { during, traceNow, recordSpan, workNow, workOnRequest } from "../../log/traces.ts";
import type { Journal } from "./journal.ts";
import type { Move } from "./move-request.ts";
import type { RequestRecord } from "./record.ts";
import { type MayBecome, type Stage, type State, callOf, whyOf } from "./stage.ts";
import type { RequestIn, StoredRequest } from "./stored-request.ts";

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

/**
 * Adds log lines, metrics, and spans to the journal. Each move of a request is one line of the log,
 * one sample, and one span; a freeze and a thaw are warnings, whoever caused them.
 */
export function observed(
  journal: Journal,
  { log, telemetry }: { log: Log; telemetry: Telemetry },
): Journal {
  function moved(record: RequestRecord, { from, since, at, ...step }: Step): void {
    const { command, target, requester, origin } = record;
    const work = workOnRequest(record);
    const rollout = origin.kind === "rollout" ? origin.rollout : undefined;
    const of = { command, target: target.name, targetId: target.id, person: requester.id, rollout };
    log.info("request.moved", { ...work.ids, ...of, from: from ?? "", ...step });
    if (from === undefined) return;
    const attributes = { command, to: step.to, why: step.why };
    during(work, () =>
      recordSpan({ name: `request ${from}`, startMs: since, endMs: at, attributes }),
    );
  }

  function ended(request: StoredRequest, from: State, at: number): void {
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

  function waits(limit: LimitName, ms: number): void {
    if (ms > 0) telemetry.limitWaits.observe({ limit }, ms / 1000);
  }

  return {
    ...journal,

    async create(request) {
      const record = { ...request.record, ...traceNow() };
      const created = await journal.create({ ...request, record });
      if (created.isNew) {
        const { createdAt, requester } = record;
        const times = { since: createdAt, at: createdAt, by: requester.id };
        moved(record, { from: undefined, to: request.state, why: "requested", ...times });
      }
      return created;
    },

    async move<To extends Stage>(request: RequestIn<MayBecome<To["state"]>>, to: Move<To>) {
      const outcome = await journal.move(request, to);
      if (outcome.kind !== "moved") return outcome;
      const before = request as StoredRequest;
      const now = outcome.request as StoredRequest;
      const { record, state: from, changedAt: since } = before;
      const { at } = outcome;
      const { state, attempt, owner: worker } = now;
      const wasBehind = before.state === "authorized" && before.stage.waitsFor !== undefined;
      if (state === "sending" && wasBehind) waits("target", at - since);
      if (state === "sending" && before.attempt === 0) {
        const waitedMs = at - record.createdAt;
        telemetry.sentSeconds.observe({ command: record.command }, Math.max(0, waitedMs) / 1000);
      }
      const { why, actor } = to;
      const who = { by: actor, attempt: attempt || undefined, worker };
      if (why) moved(record, { from, to: state, why, since, at, ...who });
      if (now.final && !before.final) ended(now, from, at);
      return outcome;
    },

    async vote(request, voter, vote, seen, meets) {
      const outcome = await journal.vote(request, voter, vote, seen, meets);
      if (outcome.result === "again") return outcome;
      const { record, changedAt: since } = request;
      log.info("request.voted", {
        ...workOnRequest(record).ids,
        ...workNow()?.ids,
        person: voter.id,
        vote,
        ...outcome,
      });
      if (outcome.result !== "authorized" && outcome.result !== "denied") return outcome;
      const at = Date.now();
      const why = `${vote === "deny" ? "denied" : "approved"} by ${voter.id}`;
      moved(record, { from: request.state, to: outcome.result, why, since, at, by: voter.id });
      if (outcome.result === "denied")
        ended({ ...request, state: "denied", stage: { state: "denied" } }, request.state, at);
      return outcome;
    },

    async freeze(freeze) {
      const isNew = await journal.freeze(freeze);
      const { by: frozenBy, id, reason } = freeze;
      if (isNew)
        log.warn("changes.frozen", { by: frozenBy, reason, ...(id ? { person: id } : {}) });
      return isNew;
    },

    async thaw(request) {
      const thawed = await journal.thaw(request);
      if (thawed.kind === "thawed") {
        const { by: frozenBy, reason } = thawed.ended;
        log.warn("changes.thawed", { person: request.id, frozenBy, reason });
      }
      return thawed;
    },

    async note(entry) {
      const id = await journal.note(entry);
      log.info("audit.noted", entry);
      return id;
    },

    async noteOnce(name, entry) {
      const isNew = await journal.noteOnce(name, entry);
      if (isNew) log.info("audit.noted", entry);
      return isNew;
    },

    async throttledMs() {
      const ms = await journal.throttledMs();
      waits("compute", ms);
      return ms;
    },
  };
}

/** Logs and counts results that were posted. */
export function observeTold({ log, telemetry }: { log: Log; telemetry: Telemetry }) {
  return (results: readonly { request: StoredRequest }[]): void => {
    for (const { request } of results) {
      const { record, changedAt } = request;
      const seconds = Math.max(0, Date.now() - changedAt) / 1000;
      telemetry.toldSeconds.observe(seconds);
      log.info("request.told", { ...workOnRequest(record).ids, seconds });
    }
  };
}
