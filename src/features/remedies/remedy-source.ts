import type { Owes, Source } from "../../core/deliver/deliver.ts";
import { isSaid } from "../../core/deliver/post-once.ts";
import type { Journal } from "../../core/request/journal.ts";
import { callOf, deciderOf, isAlready } from "../../core/request/stage.ts";
import { type StoredRequest, sentAtOf } from "../../core/request/stored-request.ts";
import { isSettledVmStatus } from "../../fleet/compute/compute.ts";
import type { Inventory } from "../../fleet/inventory/inventory.ts";
import { statusOf } from "../../core/request/seen.ts";
import type { Policy } from "../../config/policy-file.ts";
import type { Fields } from "../../redis/redis.ts";
import type { ChangeCommand } from "../../registry/define.ts";
import { type AlertPart, type AlertsOnVm, isRemedy } from "../alert-part.ts";
import {
  type Verdict,
  firesStill,
  firingIn,
  isFiringVerdict,
  isOverVerdict,
  judgeRemedy,
  sumUp,
} from "./judge-remedy.ts";
import {
  type Judgment,
  type Remedies,
  type RemedyRecord,
  type StoredRemedy,
  parseRemedy,
} from "./remedies.ts";
import { pastOf } from "./advise.ts";
import { renderCorrection, renderStillFiring } from "./render-remedy.ts";

/** The newest requests of a VM that are read to find those that followed an attempt. */
const mostOthers = 20;

/** How long until the message of an alert is looked for again (ms). */
const placeAgainMs = 30_000;

/**
 * Follows alerts after a press: some minutes after its request ended, each remedy is judged, and
 * what still fires is told once in the alert's thread. It is judged again whenever the alerts'
 * source speaks, until they are over, and what proves untrue is taken back.
 */
export function remedySource(on: {
  remedies: Remedies;
  store: Pick<Journal, "get" | "getMany" | "recentIds" | "history">;
  changes: readonly ChangeCommand[];
  config: { readonly policy: Pick<Policy, "timing"> };
  inventory: Pick<Inventory, "findVm">;
  /** Undefined where nothing tells of alerts. */
  alerts(): AlertPart | undefined;
}): Source {
  const { remedies, store, changes } = on;

  const prepareRemedy = async (id: string, fields: Fields): Promise<Owes | undefined> => {
    const remedy = parseRemedy(id, fields);
    if (!remedy) return undefined;
    const { createdAt, revision, record, state } = remedy;
    const owed = { createdAt, revision, messages: [] };
    if (state === "void") return owed;
    const request = await store.get(record.request);
    // The end of the request wakes its remedy.
    if (request && !request.final) return owed;
    const readAgain = async () => prepareRemedy(id, await remedies.outbox.get(id));
    if (!request || !(await isToBeJudged(request))) {
      if (state === "open") await remedies.voided(remedy);
      return state === "open" ? readAgain() : owed;
    }
    // What is told from now on is news.
    const now = await remedies.now();
    const alerts = await on.alerts()?.find(record.alert, record.vmId);
    const { judgment } = remedy;
    const isOpen = state === "open" || firesStill(record, alerts?.alerts ?? []);
    if (isOpen && (!judgment || isNews(alerts, judgment))) {
      const dueAt = request.changedAt + on.config.policy.timing.remedyMs;
      if (now < dueAt) return { ...owed, waitMs: dueAt - now };
      const isLast = !firesStill(record, alerts?.alerts ?? []);
      const judged = await judge(remedy, request, alerts, now, dueAt);
      const audit = auditOf(remedy, judged, request);
      await remedies.judge(remedy, judged, { isLast, audit });
      return readAgain();
    }
    const command = changes.find(({ name }) => name === record.command);
    if (!judgment || !command) return owed;
    // What is known of the command now is on the alert's message as well.
    await on.alerts()?.redraw(record.alert);
    if (!alerts) return owed;
    const toTell = messageFor(remedy, judgment, alerts);
    if (!toTell) return owed;
    // An alert that fires anew may not have its message yet.
    if (!alerts.place) return { ...owed, waitMs: placeAgainMs };
    const { channelId, ts: threadTs } = alerts.place;
    const { key, names } = toTell;
    const facts = { names, alerts, requester: request.record.requester.id, command, judgment };
    const render = async () =>
      key === "correction"
        ? renderCorrection(facts)
        : renderStillFiring({
            ...facts,
            isAgain: names.every((name) => firesAnew(name, record, alerts)),
            failedBefore: await failuresBefore(remedy, names),
          });
    const place = { channelId, threadTs };
    const message = { key, mark: toTell.mark, place, render, urgency: "result" } as const;
    return { ...owed, messages: [message] };
  };

  /**
   * Whether the request changed the VM at a known time, from which the alert's minutes count. What a
   * person recorded, or what took effect after it was told as not applied, ended long before that
   * was known.
   */
  async function isToBeJudged({ record, state, stage }: StoredRequest): Promise<boolean> {
    if (state !== "done" || isAlready(stage) || deciderOf(stage) !== undefined) return false;
    const steps = await store.history(record.id);
    return !steps.some((step) => step.state === "not-applied");
  }

  async function judge(
    { record, judgment: before }: StoredRemedy,
    request: StoredRequest,
    now: AlertsOnVm | undefined,
    judgedAt: number,
    dueAt: number,
  ): Promise<Judgment> {
    const sentAt = sentAtOf(request);
    const later = await laterChanges(request, dueAt);
    const isExplained = later.length > 0 || (await wasChangedElsewhere(request));
    const verdicts = judgeRemedy(record.fired, { now, sentAt, dueAt, isExplained });
    const toldNames = await namesToldBy(later);
    const firing = firingIn(verdicts);
    const firedOnce = [...new Set([...(before?.firedOnce ?? []), ...firing])];
    const { changedAt } = request;
    const isSuperseded = later.length > 0 && firing.every((name) => toldNames.has(name));
    return { verdicts, firedOnce, changedAt, judgedAt, isSuperseded };
  }

  /**
   * Whether the VM has settled in another status than the one that the request left it in, so that
   * something else changed it.
   */
  async function wasChangedElsewhere({ record, stage }: StoredRequest): Promise<boolean> {
    const { id } = record.target;
    const after = "after" in stage ? stage.after : undefined;
    const match = await on.inventory.findVm(id, { onlyKnown: true });
    if (!after || !("record" in match) || match.record.id !== id) return false;
    const { status } = match.record;
    return isSettledVmStatus(status) && status !== statusOf(after);
  }

  /**
   * The requests of any origin whose calls were sent to the same VM after this one's and before
   * `until` (ms by Redis), and may have changed it.
   */
  async function laterChanges(
    request: StoredRequest,
    until: number,
  ): Promise<readonly StoredRequest[]> {
    const targetId = request.record.target.id;
    const all = await store.getMany(await store.recentIds({ targetId }, mostOthers));
    return all.filter((other) => {
      const command = changes.find(({ name }) => name === other.record.command);
      const sentAt = callOf(other.stage)?.sentAt ?? 0;
      const isBetween = sentAt > sentAtOf(request) && sentAt < until;
      return isBetween && command && isRemedy(command) && mayHaveChanged(other);
    });
  }

  /** The alerts of which these requests, as attempts to end them, tell by themselves. */
  async function namesToldBy(later: readonly StoredRequest[]): Promise<ReadonlySet<string>> {
    const names = later.map(async (request) => {
      const attempt = (await isToBeJudged(request)) && (await remedies.get(request.record.id));
      return attempt ? Object.keys(attempt.record.fired) : [];
    });
    return new Set((await Promise.all(names)).flat());
  }

  /** How many attempts with the same command failed in a row right before this one. */
  async function failuresBefore({ record, createdAt }: StoredRemedy, names: readonly string[]) {
    const [name = ""] = names;
    const earlier = await remedies.of(record.vmId, name);
    const past = pastOf(
      earlier.filter((remedy) => remedy.createdAt < createdAt),
      name,
    );
    return sumUp(past).find(({ command }) => command === record.command)?.failures ?? 0;
  }

  return { outbox: remedies.outbox, prepareMessages: prepareRemedy };
}

/**
 * The record of a judgment for the audit trail. Undefined where it says no more for certain than the
 * judgment that it replaces.
 */
function auditOf(
  { record, judgment: before }: StoredRemedy,
  { verdicts }: Judgment,
  { record: { requester, target } }: StoredRequest,
): object | undefined {
  const isNew = Object.entries(verdicts).some(
    ([name, verdict]) => isCertain(verdict) && before?.verdicts[name] !== verdict,
  );
  if (!isNew) return undefined;
  const { request, alert, alertProjects, command, vmId: id, project } = record;
  const vm = {
    kind: "vm",
    id,
    name: target.name,
    projectId: project.id,
    projectName: project.name,
  };
  const attempt = { request, alert, alertProjects, command, who: requester.id, target: vm };
  return { what: "remedy", ...attempt, verdicts };
}

const isCertain = (verdict: Verdict): boolean =>
  verdict === "helped" || verdict === "failed" || verdict === "early";

/** Whether something was learned of the alerts after they were judged. */
const isNews = (alerts: AlertsOnVm | undefined, { judgedAt }: Judgment): boolean =>
  alerts === undefined || alerts.changedAt >= judgedAt;

/** Whether an alert that fired before the attempt ended, and fires again. */
const firesAnew = (alert: string, { fired }: RemedyRecord, { alerts }: AlertsOnVm): boolean =>
  alerts.some(({ name, state, since }) => {
    return name === alert && state === "firing" && since > (fired[alert] ?? Infinity);
  });

/**
 * The message that is owed now: that alerts still fire, or that this wasn't true. What has ended
 * before it could be told isn't told.
 */
function messageFor(
  { record, mark, correctionMark: correctionSaid }: StoredRemedy,
  { verdicts, firedOnce, isSuperseded }: Judgment,
  alerts: AlertsOnVm,
): { key: "end" | "correction"; mark: string | undefined; names: readonly string[] } | undefined {
  const all = Object.keys(verdicts);
  if (!isSaid(mark)) {
    const firing = new Set(
      alerts.alerts.flatMap(({ name, state }) => (state === "firing" ? name : [])),
    );
    const names = all.filter(
      (name) =>
        firing.has(name) && (isFiringVerdict(verdicts[name]) || firesAnew(name, record, alerts)),
    );
    return isSuperseded || names.length === 0 ? undefined : { key: "end", mark, names };
  }
  const names = firedOnce.filter((name) => isOverVerdict(verdicts[name]));
  return isSaid(correctionSaid) || names.length === 0
    ? undefined
    : { key: "correction", mark: correctionSaid, names };
}

/** A request that was sent and may have changed its target, as far as it is known now. */
const mayHaveChanged = ({ state, stage }: StoredRequest): boolean =>
  state !== "rejected" && state !== "not-applied" && !isAlready(stage);
