import type { Log } from "../../log/log.ts";
import type { Telemetry } from "../../log/telemetry.ts";
import { traceNow, workNow, workOnRequest } from "../../log/traces.ts";
import type { Journal } from "./journal.ts";
import type { Move } from "./move-request.ts";
import { requestRecorder } from "./request-recorder.ts";
import type { MayBecome, Stage } from "./stage.ts";
import type { RequestIn, StoredRequest } from "./stored-request.ts";

/**
 * Adds log lines, metrics, and spans to the journal. Each move of a request is one line of the log,
 * one sample, and one span; a freeze and a thaw are warnings, whoever caused them.
 */
export function observed(
  journal: Journal,
  { log, telemetry }: { log: Log; telemetry: Telemetry },
): Journal {
  const { recordMove, recordEnd, recordWait } = requestRecorder({ log, telemetry });

  return {
    ...journal,

    async create(request) {
      const record = { ...request.record, ...traceNow() };
      const created = await journal.create({ ...request, record });
      if (created.isNew) {
        const { createdAt, requester } = record;
        const times = { since: createdAt, at: createdAt, by: requester.id };
        recordMove(record, { from: undefined, to: request.state, why: "requested", ...times });
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
      if (state === "sending" && wasBehind) recordWait("target", at - since);
      if (state === "sending" && before.attempt === 0) {
        const waitedMs = at - record.createdAt;
        telemetry.sentSeconds.observe({ command: record.command }, Math.max(0, waitedMs) / 1000);
      }
      const { why, actor } = to;
      const who = { by: actor, attempt: attempt || undefined, worker };
      if (why) recordMove(record, { from, to: state, why, since, at, ...who });
      if (now.final && !before.final) recordEnd(now, from, at);
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
      recordMove(record, { from: request.state, to: outcome.result, why, since, at, by: voter.id });
      if (outcome.result === "denied")
        recordEnd({ ...request, state: "denied", stage: { state: "denied" } }, request.state, at);
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
      recordWait("compute", ms);
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
