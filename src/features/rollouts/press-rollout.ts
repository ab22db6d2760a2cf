import { UserError } from "../../errors.ts";
import { type Markdown, md, name, plainWords } from "../../messages/markdown.ts";
import { type Permit, needingApproval, permitEach } from "../../core/permit/permit.ts";
import { type ChangeCommand, type Target, calledName } from "../../registry/define.ts";
import { cancelUnsentOpen } from "./advance-rollout.ts";
import { rolloutList } from "./render-rollout.ts";
import {
  type RolloutControl,
  type RolloutRecord,
  type Skipped,
  type StoredRollout,
  mayTryAgain,
  newRolloutId,
  restIdOf,
  restOf,
} from "./rollout.ts";
import { type Rollouts, controlRollout } from "./rollouts.ts";
import { say } from "../../slack/error-reply.ts";
import type { Actor, Press } from "../../slack/receive/interaction.ts";
import { sendFile, unsent } from "../../talk/answer.ts";
import { authorize, authorizeByLists, authorizeTargets } from "../../talk/authorize.ts";
import { textIn } from "../../talk/form.ts";
import {
  type Act,
  type BeforeAck,
  type PressHandler,
  changeNamed,
  personOf,
} from "../../talk/gateway-context.ts";
import { mattersTo } from "../../core/facts/fact.ts";
import { openRehearsal } from "../../talk/open-rehearsal.ts";
import { openOr } from "../../talk/reply-with-error.ts";
import { type AroundPlan, failingIn, formOfMany } from "./form-of-many.ts";
import { aroundPlan, planList } from "./propose-rollout.ts";
import { rollingOf } from "./rolling.ts";

export interface Planned {
  rollout: StoredRollout;
  command: ChangeCommand;
}

/**
 * Finds a rollout that this person asked for, or whose VMs they all see. A hidden rollout gets the
 * same answer as one that doesn't exist.
 */
export async function findPlanned(
  id: string,
  { interaction, gateway }: BeforeAck<{ userId: string }>,
  rollouts: Rollouts,
): Promise<Planned | undefined> {
  const rollout = await rollouts.get(id);
  const command = changeNamed(rollout?.record.command, gateway);
  if (!rollout || !command) return undefined;
  const { record, targets } = rollout;
  const isSeen = record.requester.id === interaction.userId || (await gateway.sees(targets));
  return isSeen ? { rollout, command } : undefined;
}

export function onlyRequester({ rollout }: Planned, { userId }: { userId: string }): void {
  if (rollout.record.requester.id !== userId)
    throw new UserError("Only the requester can continue.");
}

/**
 * Authorizes the rollout on all its targets. Throws Refused, and UserError when one of them needs
 * approval.
 */
export async function authorizePlan(
  { rollout, command }: Planned,
  act: BeforeAck<Actor>,
  hint?: string,
): Promise<Permit> {
  const { gateway } = act;
  const { targets } = rollout;
  const { channelId } = rollout.record;
  const person = await personOf(act);
  const asking = await authorize({ command, person, channelId }, gateway);
  const permit = await authorizeTargets(asking, { targets }, gateway);
  if (permit.approvals.required === 0) return permit;
  const needing = needingApproval(permitEach(asking, targets).permits);
  const { why } = needing ?? permit.approvals;
  throw new UserError(`${needing?.targets[0]?.name ?? ""} needs approval: ${why}.`, hint);
}

/**
 * Starts a planned rollout on its targets as given, in place of those that were planned. False when
 * it has begun already. Throws if the permit doesn't cover every target.
 */
export async function begin(
  permit: Permit,
  rollout: StoredRollout,
  record: RolloutRecord,
  why: string,
  rollouts: Rollouts,
): Promise<boolean> {
  const permitted = new Set(permit.targets.map(({ id }) => id));
  if (!rollout.targets.every(({ id }) => permitted.has(id)))
    throw new Error(`${record.id} has targets that were not permitted`);
  const actor = permit.person.id;
  const progress = { ...rollout.progress, startedAt: await rollouts.now() };
  const { targets } = rollout;
  const to = { state: "running" as const, progress, record, targets, why, actor };
  return (await rollouts.move(rollout, to)) !== undefined;
}

/** Authorizes an act that changes none of the rollout's VMs. Throws Refused. */
async function authorizeHold({ rollout, command }: Planned, act: Act<Press>): Promise<void> {
  const person = await personOf(act);
  await authorizeByLists({ command, person, targets: rollout.targets }, act.gateway);
}

type OnRollout = (
  planned: Planned | undefined,
  act: Act<Press>,
  rollouts: Rollouts,
) => Promise<void>;

/** Handlers of a rollout's buttons. */
export function rolloutPresses(rollouts: Rollouts): Readonly<Record<string, PressHandler>> {
  const onRollout =
    (handle: OnRollout): PressHandler =>
    async (act, { roll }) =>
      handle(await findPlanned(String(roll), act, rollouts), act, rollouts);
  return {
    "roll:open": onRollout(openPlanned),
    "roll:rehearse": onRollout(rehearsePlanned),
    "roll:leave": onRollout(leaveOut),
    "roll:file": onRollout(sendPlanned),
    "roll:rest": onRollout(goOnWithRest),
    "roll:again": onRollout(goOnWithRest),
    "roll:list": onRollout(listOutcomes),
    "roll:pause": onRollout(steer("pause")),
    "roll:resume": onRollout(steer("resume")),
    "roll:stop": onRollout(steer("stop")),
  };
}

/**
 * Handles pause, resume and stop. Anyone who may run the command on these VMs may pause and stop,
 * because it may be an emergency.
 */
function steer(control: RolloutControl): OnRollout {
  return async (planned, act, rollouts) => {
    if (!planned)
      throw new UserError("This button no longer works.", "Its rollout no longer exists.");
    const { interaction, gateway } = act;
    const { rollout } = planned;
    const { id, channelId } = rollout.record;
    const card = rollout.delivered.card?.channelId ?? channelId;
    if (interaction.channelId !== "" && interaction.channelId !== card)
      throw new UserError("This button belongs to another channel.");
    const person = await personOf(act);
    if (control === "resume") await authorizePlan(planned, act, "It stays paused.");
    else await authorizeHold(planned, act);
    const changed = await controlRollout(id, control, person, gateway.policyVersion, rollouts);
    if (control === "stop") await cancelUnsentOpen(changed, gateway.store);
  };
}

/** Sends the list of outcomes as a file to people who may run the command on these VMs. */
async function listOutcomes(planned: Planned | undefined, act: Act<Press>): Promise<void> {
  if (!planned?.rollout.final)
    throw new UserError("This button no longer works.", "Its rollout no longer exists.");
  await authorizeHold(planned, act);
  const list = rolloutList(planned.rollout, planned.command);
  const isSent = await sendFile(list, act);
  await act.reply.privately(isSent ? say(md`The list is in your direct messages.`) : unsent(list));
}

/**
 * Starts the targets that a stopped rollout left, once, with the rights of the person who presses:
 * without the VM that stopped it, or with that VM first. VMs and options were confirmed before.
 */
async function goOnWithRest(
  planned: Planned | undefined,
  act: Act<Press>,
  rollouts: Rollouts,
): Promise<void> {
  const again = act.interaction.action === "roll:again";
  if (!planned || !["stopped", "failed"].includes(planned.rollout.state))
    throw new UserError("This rollout isn't paused.");
  const { reply, gateway } = act;
  const { store, policy, policyVersion } = gateway;
  const { record } = planned.rollout;
  const permit = await authorizePlan(planned, act, "It stays stopped.");
  if (again && !mayTryAgain(planned.rollout))
    throw new UserError("Its outcome is unknown, so it isn't tried again.");
  const targets = restOf(planned.rollout, again);
  const id = restIdOf(record.id);
  if (targets.length === 0) throw new UserError("No VM of this rollout is left.");
  const { id: personId, teamId, name: called } = await personOf(act);
  await store.countAgainstLimits({ personId, holder: id, limits: policy.limits });
  const rest = {
    ...record,
    id,
    total: targets.length,
    requester: { id: personId, teamId, name: called },
    policyVersion,
    leftOut: [],
    createdAt: gateway.now(),
  };
  await rollouts.plan(rest, targets);
  // A process may have planned the rest and died before it began. What begins now is what this press
  // chose, because that plan may have been for the other button.
  const standing = await rollouts.get(id);
  const isBegun =
    standing?.state === "planned" &&
    (await begin(permit, { ...standing, targets }, rest, `the rest of ${record.id}`, rollouts));
  if (isBegun) return;
  const begun = await rollouts.get(id);
  if (!begun || begun.state === "planned")
    throw new UserError("Its state just changed.", "Press the button again.");
  await reply.privately(say(alreadyBegun(planned.rollout, begun)));
}

/** Says who chose how to go on, and what, because the other button may have been pressed. */
function alreadyBegun(stopped: StoredRollout, rest: StoredRollout): Markdown {
  const { id, requester } = rest.record;
  const culprit = stopped.targets[stopped.progress.culprit ?? -1];
  const isAgain = rest.targets.some((target) => target.id === culprit?.id);
  const how = culprit && md`, ${isAgain ? "with" : "without"} ${calledName(culprit)}`;
  return md`The rest of this rollout was already started by ${requester.name}${how ?? ""}: ${name(id)}.`;
}

/** Opens the form from a button, for mentions and for forms that Slack didn't open in time. */
async function openPlanned(plan: Planned | undefined, act: Act<Press>): Promise<void> {
  const { command, rollout } = await stillPlanned(plan, act);
  const { record, targets } = rollout;
  const around = await aroundPlan(command, record, targets, act.gateway);
  await openOr(act, formOfMany(command, record, targets, around));
}

/** Finds the plan again for its requester, who must still be allowed to begin it. */
async function stillPlanned(plan: Planned | undefined, act: Act<Press>): Promise<Planned> {
  const planned = ownPlan(plan, act.interaction);
  await authorizePlan(planned, act);
  return planned;
}

function ownPlan(planned: Planned | undefined, interaction: { userId: string }): Planned {
  if (planned?.rollout.state !== "planned")
    throw new UserError(
      "This is too old, or was already started.",
      "Please run the command again.",
    );
  onlyRequester(planned, interaction);
  return planned;
}

/** Tells on top of the form what would happen, with the options that are filled in. */
async function rehearsePlanned(plan: Planned | undefined, act: Act<Press>): Promise<void> {
  const planned = ownPlan(plan, act.interaction);
  const { command } = planned;
  const { total, options } = planned.rollout.record;
  const maxUnavailable = textIn(act.interaction.view?.values ?? {}, "roll:most");
  const typed = maxUnavailable === "" ? options : rollingOf(command, { maxUnavailable }, total);
  const atOnce = Number.isFinite(typed.maxUnavailable) ? typed.maxUnavailable : 1;
  await openRehearsal({ permit: await authorizePlan(planned, act), atOnce }, act);
}

/**
 * Replaces the plan of an open form by one without the VMs that are known to fail. It is another
 * plan: what was shown before can't begin in its place.
 */
async function leaveOut(
  plan: Planned | undefined,
  act: Act<Press>,
  rollouts: Rollouts,
): Promise<void> {
  const { rollout, command } = await stillPlanned(plan, act);
  const { gateway } = act;
  const { record, targets } = rollout;
  const { known } = await aroundPlan(command, record, targets, gateway);
  const mattering = mattersTo(command, known).filter(({ blocking }) => blocking !== "note");
  const failing = failingIn(mattering);
  const left = targets.filter(({ id }) => !failing.has(id));
  if (left.length === 0) throw new UserError("Every VM of this plan is known to fail.");
  const reasons = Map.groupBy(mattering, ({ about }) => about.id);
  const skipped = targets.flatMap((target): Skipped[] => {
    const whys = reasons.get(target.id) ?? [];
    if (whys.length === 0) return [];
    const why = whys.map(({ text }) => withoutName(plainWords(text), target)).join("; ");
    return [{ name: calledName(target), why }];
  });
  const rest: RolloutRecord = {
    ...record,
    id: newRolloutId(),
    total: left.length,
    leftOut: [...record.leftOut, ...skipped],
    createdAt: gateway.now(),
  };
  await rollouts.plan(rest, left);
  await redraw({ rollout: { ...rollout, record: rest, targets: left }, command }, act);
}

/** Drops the name that a sentence begins with, and its full stop, for a list that has the name beside it. */
const withoutName = (text: string, target: Target): string =>
  (text.startsWith(`${calledName(target)} `)
    ? text.slice(calledName(target).length + 1)
    : text
  ).replace(/\.$/, "");

/** Sends the VMs of an open form as a file. */
async function sendPlanned(plan: Planned | undefined, act: Act<Press>): Promise<void> {
  const planned = await stillPlanned(plan, act);
  const list = planList(planned.rollout.targets);
  if (!(await sendFile(list, act))) return act.reply.privately(unsent(list));
  await redraw(planned, act, { hasFile: true });
}

/** Shows a plan in the open form. Slack keeps what was typed, because the inputs stay the same. */
async function redraw(
  { rollout: { record, targets }, command }: Planned,
  { interaction, reply, gateway }: Act<Press>,
  more: Pick<AroundPlan, "hasFile"> = {},
): Promise<void> {
  const { viewId, view } = interaction;
  if (viewId === undefined || !view) return;
  const around = await aroundPlan(command, record, targets, gateway);
  await reply.update(
    viewId,
    formOfMany(command, record, targets, { ...around, ...more }),
    view.hash,
  );
}
