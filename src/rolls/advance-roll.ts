import { duration } from "../messages/text.ts";
import type { ChangeCommand } from "../registry/define.ts";
import type { StoredRequest } from "../requests/record.ts";
import { judgeTarget } from "./judge-target.ts";
import { nextStep } from "./next-step.ts";
import type { RollingWork } from "./rolling-work.ts";
import {
  type OpenTarget,
  type Outcome,
  requestIdOf,
  type RollTargets,
  type StoredRoll,
} from "./roll.ts";
import { submitTarget } from "./submit-target.ts";
import { takeBack } from "./take-back.ts";

/** Steps that follow from each other are made at once, but another process may have its turn in between. */
const mostSteps = 5;
/** How long the first target waits for the roll's message to stand in the channel. */
const messageWithinMs = 5000;

/** Brings every open roll as far as it may go now. Any number of processes may call it: each step is a compare-and-set. */
export async function advanceRolls(by: RollingWork): Promise<void> {
  const ids = await by.rolls.openIds();
  for (const id of by.known.keys()) if (!ids.includes(id)) by.known.delete(id);
  const turns = await Promise.allSettled(ids.map((id) => advanceRoll(id, by)));
  for (const turn of turns) {
    if (turn.status === "rejected") by.performing.log.warn("roll.later", { error: turn.reason });
  }
}

async function advanceRoll(id: string, by: RollingWork): Promise<void> {
  const { rolls, performing } = by;
  const { workerId, policy } = performing;
  if (!(await rolls.lease("turn", id, workerId, 3 * policy.timing.httpTimeoutMs))) return;
  try {
    for (let steps = 0; steps < mostSteps && (await step(id, by)); steps++);
  } finally {
    await rolls.release("turn", id, workerId).catch(() => undefined);
  }
}

/** True when there may be more to do at once. */
async function step(id: string, by: RollingWork): Promise<boolean> {
  const { rolls, performing } = by;
  const roll = await rolls.get(id);
  if (!roll || roll.final || roll.state === "planned") return false;
  const halt = await reasonToPause(roll, by);
  if (halt !== undefined) {
    const progress = { ...roll.progress, why: halt };
    await rolls.move(roll, { state: "paused", progress, why: halt, tell: "now" });
    return true;
  }
  await rolls.seen(id);
  if (await waitsForMessage(roll, by)) return false;
  const command = performing.commands.find(({ name }) => name === roll.record.command);
  if (!command) return giveUp(roll, by);
  const targets = by.known.get(id) ?? (await rolls.targets(id));
  by.known.set(id, targets);
  const ended = await judgeOpen(roll, targets, command, by);
  const next = nextStep(
    roll,
    ended,
    (n, anew) => requestIdOf(id, n, anew),
    (n) => targets[n]?.name ?? `number ${n + 1}`,
  );
  const isNews = next.state !== roll.state;
  if (!isNews && ended.length === 0 && next.begins.length === 0) return false;
  const moved = await rolls.move(roll, {
    state: next.state,
    progress: next.progress,
    outcomes: ended.filter(({ is }) => is !== "returned"),
    tell: isNews ? "now" : "soon",
    ...(next.why === undefined ? {} : { why: next.why }),
  });
  if (!moved) return true;
  await by.at("roll-claimed", id);
  await begin(moved, next.begins, targets, command, by);
  return isNews;
}

/** Why nothing further may begin by itself until a person says so; only asked of what runs. */
async function reasonToPause(
  { state, record, seenAt }: StoredRoll,
  { performing }: RollingWork,
): Promise<string | undefined> {
  if (state !== "running") return undefined;
  const { store, policy, policyVersion } = performing;
  if (record.policyVersion !== policyVersion) return "the policy changed since this was asked";
  const frozen = await store.freezeState();
  if (frozen) return `all changes are frozen by ${frozen.by}`;
  // What was asked for in another hour may not be wanted in this one
  const awayMs = (await store.now()) - seenAt;
  if (awayMs > policy.timing.staleAfterMs) return `nothing looked after it for ${duration(awayMs)}`;
  return undefined;
}

/** People see it before it begins, and what must be said of a target belongs into its thread. Slack may be away, though. */
async function waitsForMessage(
  { progress, delivered, state }: StoredRoll,
  { rolls }: RollingWork,
): Promise<boolean> {
  if (state !== "running" || progress.next > 0 || delivered.card || delivered.isElsewhere)
    return false;
  return (await rolls.now()) - (progress.startedAt ?? 0) < messageWithinMs;
}

async function giveUp(roll: StoredRoll, { rolls }: RollingWork): Promise<boolean> {
  const why = `this version of Gatehouse does not know ${roll.record.command}`;
  const progress = { ...roll.progress, why, endsAs: "failed" as const, open: [] };
  await rolls.move(roll, { state: "failed", progress, why, tell: "now" });
  return false;
}

/** What became of those under way. What was claimed but never reached the journal is brought there now. */
async function judgeOpen(
  roll: StoredRoll,
  targets: RollTargets,
  command: ChangeCommand,
  by: RollingWork,
): Promise<Outcome[]> {
  const { open } = roll.progress;
  const { store } = by.performing;
  const stored = await store.getMany(open.map(({ request }) => request));
  const byId = new Map(stored.map((request) => [request.record.id, request]));
  const missing = open.filter(({ request }) => !byId.has(request));
  // A process may have died between its claim and the journal: only a person's pause keeps it waiting
  if (roll.state !== "paused") await begin(roll, missing, targets, command, by);
  const judged = await Promise.all(
    open.map(async (one) => {
      const request = byId.get(one.request);
      const target = targets[one.n];
      if (!request || !target) return undefined;
      if (roll.state === "ending") await takeBack(request, store);
      const outcome = await judgeTarget(one, request, target, by.performing);
      if (outcome && isReturned(roll, request)) return { ...outcome, is: "returned" as const };
      return outcome && isOverdue(roll, request)
        ? { n: one.n, request: one.request, is: "cancelled" as const }
        : outcome;
    }),
  );
  return judged.filter((outcome) => outcome !== undefined);
}

/** A freeze or a new policy turns away what was on its way; both pause the roll, and nothing has failed by it. */
function isReturned({ state }: StoredRoll, { state: ended, progress }: StoredRequest): boolean {
  const isTurnedAway = ended === "cancelled" && progress.sentAt === undefined;
  return state === "paused" && isTurnedAway && progress.decidedBy === undefined;
}

/** What comes to its turn after a stop has failed at nothing: somebody found it before it was taken back. */
function isOverdue({ state }: StoredRoll, { state: ended, progress }: StoredRequest): boolean {
  return state === "ending" && ended === "expired" && progress.sentAt === undefined;
}

/** Brings claimed targets into the journal. A pause or a stop that comes meanwhile holds back what follows it. */
async function begin(
  roll: StoredRoll,
  begins: readonly OpenTarget[],
  targets: RollTargets,
  command: ChangeCommand,
  by: RollingWork,
): Promise<void> {
  let standing = roll;
  for (const { n, request: wanted } of begins) {
    const target = targets[n];
    if (!target) continue;
    if ((await by.rolls.stateOf(roll.record.id)) !== standing.state) return;
    const request = await submitTarget(standing, wanted, target, command, by);
    await by.at("roll-submitted", roll.record.id);
    if (request === wanted) continue;
    // The same person asked for the same a moment ago: that request stands for both
    const open = standing.progress.open.map((one) => (one.n === n ? { n, request } : one));
    const { state, progress } = standing;
    const moved = await by.rolls.move(standing, { state, progress: { ...progress, open } });
    if (!moved) return;
    standing = moved;
  }
}
