import type { Owes, Source } from "../../core/deliver/deliver.ts";
import { isSaid } from "../../core/deliver/post-once.ts";
import type { Journal } from "../../core/request/journal.ts";
import { callOf, deciderOf, isAlready } from "../../core/request/stage.ts";
import { type StoredRequest, sentAtOf } from "../../core/request/stored-request.ts";
import type { Policy } from "../../config/policy-file.ts";
import type { Fields } from "../../redis/redis.ts";
import type { ChangeCommand } from "../../registry/define.ts";
import { type AlertPart, type AlertsOnVm, isRemedy } from "../alert-part.ts";
import { judgeRemedy, sumUp } from "./judge-remedy.ts";
import { type Judgment, parseRemedy, type Remedies, type StoredRemedy } from "./remedies.ts";
import { pastOf } from "./advise.ts";
import { renderStillFiring } from "./render-remedy.ts";

/** The newest requests of a VM that are read to find those that followed an attempt. */
const mostOthers = 20;

/** How long until the message of an alert is looked for again (ms). */
const placeAgainMs = 30_000;

/**
 * Follows alerts after a press: some minutes after its request ended, each remedy is judged, and
 * what still fires is told once in the alert's thread.
 */
export function remedySource(on: {
  remedies: Remedies;
  store: Pick<Journal, "get" | "getMany" | "recentIds" | "history">;
  changes: readonly ChangeCommand[];
  config: { readonly policy: Pick<Policy, "timing"> };
  /** Undefined where nothing tells of alerts. */
  alerts(): AlertPart | undefined;
}): Source {
  const { remedies, store, changes } = on;

  const prepareRemedy = async (id: string, fields: Fields): Promise<Owes | undefined> => {
    const remedy = parseRemedy(fields);
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
    const alerts = await on.alerts()?.find(record.alert, record.vmId);
    if (state === "open") {
      const dueAt = request.changedAt + on.config.policy.timing.remedyMs;
      const now = await remedies.now();
      if (now < dueAt) return { ...owed, waitMs: dueAt - now };
      await remedies.judge(remedy, await judgmentOf(remedy, request, alerts, now, dueAt));
      return readAgain();
    }
    const { judgment, said } = remedy;
    const command = changes.find(({ name }) => name === record.command);
    if (!judgment || !command || isSaid(said)) return owed;
    // What is known of the command now is on the alert's message as well.
    await on.alerts()?.redraw(record.alert);
    const names = namesToTell(judgment, alerts);
    if (names.length === 0 || !alerts) return owed;
    // An alert that fires anew may not have its message yet.
    if (!alerts.place) return { ...owed, waitMs: placeAgainMs };
    const { channelId, ts: threadTs } = alerts.place;
    const render = async () =>
      renderStillFiring({
        names,
        alerts,
        requester: request.record.requester.id,
        command,
        afterMs: judgment.judgedAt - judgment.changedAt,
        isAgain: alerts.alerts.some((one) => one.since > (record.fired[one.name] ?? Infinity)),
        failedBefore: await failuresBefore(remedy, names),
      });
    const place = { channelId, threadTs };
    return { ...owed, messages: [{ key: "end", mark: said, place, render, urgency: "result" }] };
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

  async function judgmentOf(
    { record }: StoredRemedy,
    request: StoredRequest,
    now: AlertsOnVm | undefined,
    judgedAt: number,
    dueAt: number,
  ): Promise<Judgment> {
    const sentAt = sentAtOf(request);
    const later = await laterChanges(request, judgedAt);
    const lateByMs = judgedAt - dueAt;
    const isSuperseded = later.length > 0;
    const verdicts = judgeRemedy(record.fired, { now, sentAt, lateByMs, isSuperseded });
    const told = await namesToldBy(later);
    const isTold = (name: string) => verdicts[name] !== "failed" || told.has(name);
    const { changedAt } = request;
    return { verdicts, changedAt, judgedAt, isSuperseded: Object.keys(verdicts).every(isTold) };
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
      earlier.filter((one) => one.createdAt < createdAt),
      name,
    );
    return sumUp(past).find(({ command }) => command === record.command)?.failures ?? 0;
  }

  return { outbox: remedies.outbox, prepareMessages: prepareRemedy };
}

/** The alerts that were judged to fire and do so now: what has ended meanwhile isn't told. */
function namesToTell(
  { verdicts, isSuperseded }: Judgment,
  alerts: AlertsOnVm | undefined,
): readonly string[] {
  if (isSuperseded) return [];
  const firing = new Set(
    alerts?.alerts.flatMap(({ name, state }) => (state === "firing" ? name : [])),
  );
  return Object.keys(verdicts).filter((name) => verdicts[name] === "failed" && firing.has(name));
}

/** A request that was sent and may have changed its target, as far as it is known now. */
const mayHaveChanged = ({ state, stage }: StoredRequest): boolean =>
  state !== "rejected" && state !== "not-applied" && !isAlready(stage);
