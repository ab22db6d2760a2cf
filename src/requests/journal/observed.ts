import { during, originNow, workNow, workOnRequest } from "../../log/ids.ts";
import type { Log } from "../../log/log.ts";
import type { Spans } from "../../log/spans.ts";
import type { LimitName, Telemetry } from "../../log/telemetry.ts";
import type { Journal } from "./journal.ts";
import type { RequestRecord, State, StoredRequest } from "./record.ts";

interface Step {
  from: State | undefined;
  to: State;
  why: string;
  /** Redis time (ms) at which it came into `from`, and left it. */
  since: number;
  at: number;
  actor?: string | undefined;
  attempt?: number;
  worker?: string | undefined;
}

/**
 * The journal, with its log lines, metrics, and spans: each move of a request is one line of the log, one sample, and one
 * span; a freeze and a thaw are warnings, whoever caused them.
 */
export function observed(
  journal: Journal,
  { log, telemetry, spans }: { log: Log; telemetry: Telemetry; spans?: Spans | undefined },
): Journal {
  function moved(record: RequestRecord, step: Step): void {
    const { from, to, why, since, at, actor, attempt, worker } = step;
    const { command, target, requester } = record;
    const work = workOnRequest(record);
    log.info("request.moved", {
      ...work.ids,
      command,
      target: target.name,
      targetId: target.id,
      person: requester.id,
      ...(record.roll ? { rollout: record.roll } : {}),
      from: from ?? "",
      to,
      why,
      ...(actor ? { by: actor } : {}),
      ...(attempt ? { attempt } : {}),
      ...(worker ? { worker } : {}),
    });
    if (from === undefined || !spans) return;
    const attributes = { command, to, why };
    during(work, () =>
      spans.ended({ name: `request ${from}`, startMs: since, endMs: at, attributes }),
    );
  }

  function ended(request: StoredRequest, from: State, at: number): void {
    const { record, state, progress } = request;
    const { command } = record;
    telemetry.requests.inc({ command, end: state });
    if (progress.sentAt !== undefined && from !== "unknown")
      telemetry.settledSeconds.observe({ command }, Math.max(0, at - progress.sentAt) / 1000);
    spans?.ended({
      name: command,
      ...workOnRequest(record).parents[0],
      parent: record.parentSpan,
      startMs: record.createdAt,
      endMs: at,
      attributes: {
        request: record.id,
        command,
        target: record.target.id,
        person: record.requester.id,
        end: state,
      },
      failed: state === "failed" ? (progress.why ?? state) : undefined,
    });
  }

  function waits(limit: LimitName, ms: number): void {
    if (ms > 0) telemetry.limitWaits.observe({ limit }, ms / 1000);
  }

  return {
    ...journal,

    async create(request) {
      const record = { ...request.record, ...originNow() };
      const created = await journal.create({ ...request, record });
      if (created.isNew) {
        const { createdAt, requester, via } = record;
        const times = { since: createdAt, at: createdAt, actor: requester.id };
        moved(record, { from: undefined, to: request.state, why: `asked by ${via}`, ...times });
      }
      return created;
    },

    async move(request, to) {
      const outcome = await journal.move(request, to);
      if (outcome.is !== "moved") return outcome;
      const { record, state: from, changedAt: since, attempt: before } = request;
      const { at, request: now } = outcome;
      const { state, attempt, owner: worker } = now;
      if (state === "sending" && request.progress.waitsFor) waits("target", at - since);
      if (state === "sending" && before === 0) {
        const waitedMs = at - record.createdAt;
        telemetry.sentSeconds.observe({ command: record.command }, Math.max(0, waitedMs) / 1000);
      }
      const { why, actor } = to;
      if (why) moved(record, { from, to: state, why, since, at, actor, attempt, worker });
      if (now.final && !request.final) ended(now, from, at);
      return outcome;
    },

    async vote(request, voter, vote, seen, meets) {
      const outcome = await journal.vote(request, voter, vote, seen, meets);
      if (outcome.is === "again") return outcome;
      const { record, changedAt: since } = request;
      log.info("request.voted", {
        ...workOnRequest(record).ids,
        ...workNow()?.ids,
        person: voter.id,
        vote,
        ...outcome,
      });
      if (outcome.is !== "authorized" && outcome.is !== "denied") return outcome;
      const at = Date.now();
      const why = `${vote === "deny" ? "denied" : "approved"} by ${voter.id}`;
      moved(record, { from: request.state, to: outcome.is, why, since, at, actor: voter.id });
      if (outcome.is === "denied") ended({ ...request, state: "denied" }, request.state, at);
      return outcome;
    },

    async freeze(freeze) {
      const isNew = await journal.freeze(freeze);
      const { by, id, reason } = freeze;
      if (isNew) log.warn("changes.frozen", { by, reason, ...(id ? { person: id } : {}) });
      return isNew;
    },

    async thaw(by) {
      const isNew = await journal.thaw(by);
      if (isNew) log.warn("changes.thawed", { person: by });
      return isNew;
    },

    async note(entry) {
      const id = await journal.note(entry);
      log.info("audit.noted", entry);
      return id;
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
  return (requests: readonly StoredRequest[]): void => {
    for (const { record, changedAt } of requests) {
      const seconds = Math.max(0, Date.now() - changedAt) / 1000;
      telemetry.toldSeconds.observe(seconds);
      log.info("request.told", { ...workOnRequest(record).ids, seconds });
    }
  };
}
