import { type AuditEntry, actIdIn } from "../../audit/read-audit.ts";
import { tellRollout } from "../../core/cards/tell-act.ts";
import type { Sight } from "../../core/permit/sight.ts";
import type { Journal } from "../../core/request/journal.ts";
import { requestsOf } from "../../core/request/lists.ts";
import { md, when } from "../../messages/markdown.ts";
import type { ChangeCommand, Target } from "../../registry/define.ts";
import type { Event, EventSource } from "../../core/events/event.ts";
import { rolloutKind } from "../../core/events/request-events.ts";
import type { StoredRollout } from "./rollout.ts";
import type { Rollouts } from "./rollouts.ts";

interface RolloutEvents {
  rollouts: Pick<Rollouts, "get">;
  store: Pick<Journal, "getMany">;
  changes: readonly ChangeCommand[];
}

/**
 * Rollouts that did something: also the targets that have no request, which the journal doesn't
 * know, as far as the reader sees them.
 */
export const rolloutEvents = (on: RolloutEvents): EventSource => ({
  name: "rollouts",
  recordKinds: ["roll", "request"],
  async read(entries, sight) {
    const byAct = Map.groupBy(entries, ({ record }) => actIdIn(record) ?? "");
    const acts = [...byAct].map(async ([id, actEntries]) => {
      const rollout = id.startsWith("roll-") ? await on.rollouts.get(id) : undefined;
      return rollout && rollout.state !== "planned"
        ? actOf(rollout, actEntries, sight, on)
        : undefined;
    });
    return (await Promise.all(acts)).filter((act) => act !== undefined);
  },
});

async function actOf(
  rollout: StoredRollout,
  entries: readonly AuditEntry[],
  { only }: Pick<Sight, "only">,
  { store, changes }: RolloutEvents,
): Promise<Event | undefined> {
  const { record, targets, final, changedAt, progress, state } = rollout;
  const seen = new Set(await only(Promise.resolve(targets), (target) => target));
  if (seen.size === 0) return undefined;
  const requests = await only(
    requestsOf(requestIdsOf(rollout), store),
    (request) => request.record.target,
  );
  const left = unbegunIn(rollout).filter((target) => seen.has(target));
  const refused = targets.filter((target, n) => seen.has(target) && isRefused(rollout, n));
  const { requester, command } = record;
  const shownPart = {
    requester,
    command,
    requests,
    unbegun: left.length,
    unbegunNames: left.map((target) => target.name),
    refused: refused.length,
  };
  const why = state === "running" ? undefined : progress.why;
  return {
    id: record.id,
    kind: rolloutKind,
    at: progress.startedAt ?? record.createdAt,
    endedAt: final ? changedAt : undefined,
    text: tellRollout(
      { ...shownPart, isOver: final, state },
      changes.find(({ name }) => name === command),
    ),
    proof: md`${final ? md`Ended ${when(changedAt)}` : md`Under way`}${seen.size === targets.length && why ? md`: ${why}` : ""}.`,
    // The records of the rollout itself count all its targets.
    records:
      seen.size === targets.length
        ? entries.flatMap((entry) => (entry.record["what"] === "roll" ? [entry.id] : []))
        : [],
  };
}

const requestIdsOf = ({ outcomes, progress }: StoredRollout): readonly string[] =>
  [...outcomes.values(), ...progress.open].map(({ request }) => request);

/** The targets that have no request, so far or for good. */
export const unbegunIn = ({ targets, outcomes, progress }: StoredRollout): readonly Target[] =>
  targets.filter((_, n) => {
    const isOpen = progress.open.some((openTarget) => openTarget.n === n);
    return !isOpen && (outcomes.get(n)?.is ?? "returned") === "returned";
  });

const isRefused = ({ outcomes }: StoredRollout, n: number): boolean =>
  outcomes.get(n)?.request === "";
