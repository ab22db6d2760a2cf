import { UserError } from "../../errors.ts";
import { needingApproval } from "../../policy/decide.ts";
import { md, name } from "../../messages/text.ts";
import type { ChangeCommand, Target } from "../../registry/define.ts";
import {
  type Input,
  withTarget,
  type Rolling,
  rollingArgs,
  rollingOf,
  withoutRolling,
} from "../../registry/invocation.ts";
import { checkInput } from "../../registry/parse.ts";
import { type RolloutControl, controlRollout } from "../../rollouts/control-rollout.ts";
import { restIdOf, restOf, type StoredRollout } from "../../rollouts/rollout.ts";
import { cancelUnsentOpen } from "../../rollouts/targets.ts";
import { say } from "../error-reply.ts";
import { parseJson, textAt } from "../web.ts";
import type { Reply, Submission, Interaction, Press } from "../receive/interaction.ts";
import { authorize, authorizeRights } from "./authorize.ts";
import { inputOf } from "./dialog-view.ts";
import { frozenLine } from "./frozen.ts";
import { changeNamed, type GatewayContext } from "./gateway-context.ts";
import { asksNumber, rolloutView } from "./rollout-view.ts";

type Errors = Record<string, string>;

/** The errors of a submitted rollout dialog by field; undefined when there are none. */
export async function checkRollout(
  interaction: Submission,
  gateway: GatewayContext,
): Promise<{ errors: Errors } | undefined> {
  const errors: Errors = {};
  try {
    const planned = await readPlanned(interaction, gateway);
    if (planned.rollout.state !== "planned") return undefined;
    Object.assign(errors, fieldErrors(interaction, planned));
    await authorizeRollout(planned, interaction, gateway);
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    errors["roll:most"] = error.message;
  }
  return Object.keys(errors).length > 0 ? { errors } : undefined;
}

/** Starts the rollout; idempotent. */
export async function submitRollout(
  interaction: Submission,
  reply: Reply,
  gateway: GatewayContext,
): Promise<void> {
  const { rollout, command } = await readPlanned(interaction, gateway);
  const record = { ...rollout.record, ...fieldsOf(interaction, rollout, command) };
  const personId = interaction.userId;
  if (rollout.state === "planned") {
    // Counts as one request, however many VMs: a person confirmed their number
    const { limits } = gateway.policy;
    const turn = { personId, interactionId: interaction.id, limits };
    await gateway.store.takeTurn(turn);
  }
  const started =
    rollout.state === "planned" &&
    (await gateway.rollouts.move(rollout, {
      state: "running",
      progress: { ...rollout.progress, startedAt: await gateway.rollouts.now() },
      record,
      why: `confirmed: ${rollout.record.words}`,
      actor: personId,
    }));
  if (!started)
    await reply.privately(
      say(md`You already requested this: ${name(rollout.record.id)} is in progress.`),
    );
}

interface Planned {
  rollout: StoredRollout;
  command: ChangeCommand;
}

async function find(id: string, gateway: GatewayContext): Promise<Planned | undefined> {
  const rollout = await gateway.rollouts.get(id);
  const command = changeNamed(rollout?.record.command, gateway);
  return rollout && command && { rollout, command };
}

async function readPlanned(interaction: Submission, gateway: GatewayContext): Promise<Planned> {
  const id = textAt(parseJson(interaction.privateMetadata), "roll");
  const planned = await find(id, gateway);
  if (!planned)
    throw new UserError("This was open too long and is out of date. Please run the command again.");
  onlyRequester(planned, interaction);
  return planned;
}

function onlyRequester({ rollout }: Planned, { userId }: Interaction): void {
  if (rollout.record.requester.id !== userId)
    throw new UserError("Only the requester can continue.");
}

/** Throws where policy doesn't let this person run it on its targets, or only with approval. */
async function authorizeRollout(
  { rollout, command }: Planned,
  interaction: Interaction,
  gateway: GatewayContext,
  hint?: string,
): Promise<readonly Target[]> {
  const { id, channelId } = rollout.record;
  const person = await gateway.person(interaction.userId, interaction.teamId);
  const targets = await gateway.rollouts.targets(id);
  await authorize({ command, targets, person, channelId }, gateway);
  const needing = needingApproval(gateway.policy, { command, targets });
  if (needing)
    throw new UserError(`${needing.targets[0]?.name ?? ""} needs approval: ${needing.why}.`, hint);
  return targets;
}

/** The command's own arguments, and the rollout options. */
function fieldsOf(
  interaction: Submission,
  { record }: StoredRollout,
  command: ChangeCommand,
): { input: Input; options: Rolling } {
  const ticked = interaction.values["roll:canary"];
  const rolling = {
    maxUnavailable: textIn(interaction, "roll:most"),
    canary: Array.isArray(ticked) ? ticked.length > 0 : Boolean(ticked),
    stopOnFailure: textIn(interaction, "roll:failures"),
  };
  return {
    input: withoutRolling(command, inputOf(command, record.input, interaction.values)),
    options: rollingOf(command, rolling, record.total),
  };
}

function fieldErrors(interaction: Submission, { rollout, command }: Planned): Errors {
  const errors: Errors = {};
  const { record } = rollout;
  const { input } = fieldsOf(interaction, rollout, command);
  // Any target will do: this checks everything else
  const checked = checkInput(command, withTarget(command, input, { id: "any" }));
  for (const { key, text: why } of "problems" in checked ? checked.problems : [])
    errors[`arg:${key}` in interaction.values ? `arg:${key}` : "roll:most"] ??= why;
  const most = rollingArgs.maxUnavailable.safeParse(textIn(interaction, "roll:most"));
  if (!most.success) errors["roll:most"] = "A whole number from 1, or a percentage like 10%.";
  const failures = rollingArgs.stopOnFailure.safeParse(textIn(interaction, "roll:failures"));
  if (!failures.success) errors["roll:failures"] = "A whole number from 1 to 1,000.";
  if (asksNumber(record) && textIn(interaction, "roll:number") !== String(record.total))
    errors["roll:number"] = `Type ${record.total}: the number of VMs that will change.`;
  return errors;
}

function textIn({ values }: Submission, field: string): string {
  return String(values[field] ?? "").trim();
}

const controls: Readonly<Record<string, RolloutControl>> = {
  "roll:pause": "pause",
  "roll:resume": "resume",
  "roll:stop": "stop",
};

/** A button of a rollout. Anyone who may run its command on its VMs may pause and stop it: it may be an emergency. */
export async function pressOnRollout(
  interaction: Press,
  value: Input,
  reply: Reply,
  gateway: GatewayContext,
): Promise<void> {
  const id = String(value["roll"]);
  const found = await find(id, gateway);
  if (interaction.action === "roll:open") return openPlanned(found, interaction, reply, gateway);
  if (interaction.action === "roll:rest") return goOnWithRest(found, interaction, reply, gateway);
  const control = controls[interaction.action];
  if (!control || !found)
    throw new UserError("This button no longer works.", "Its rollout no longer exists.");
  const { rollout, command } = found;
  const { channelId } = rollout.record;
  const card = rollout.delivered.card?.channelId ?? channelId;
  if (interaction.channelId !== "" && interaction.channelId !== card)
    throw new UserError("This button belongs to another channel.");
  const person = await gateway.person(interaction.userId, interaction.teamId);
  if (control === "resume") await authorizeRollout(found, interaction, gateway, "It stays paused.");
  else {
    const targets = await gateway.rollouts.targets(id);
    await authorize({ command, targets: [], person, channelId, isStop: true }, gateway);
    await authorizeRights({ command, targets, person, channelId }, gateway);
  }
  const { policyVersion, rollouts } = gateway;
  const changed = await controlRollout(id, control, person, policyVersion, rollouts);
  if (control === "stop") await cancelUnsentOpen(changed, gateway.store);
}

/** Starts what a stopped rollout left, once, with the rights of who presses. Its VMs and options were confirmed before. */
async function goOnWithRest(
  planned: Planned | undefined,
  interaction: Press,
  reply: Reply,
  gateway: GatewayContext,
): Promise<void> {
  if (!planned || !["stopped", "failed"].includes(planned.rollout.state))
    throw new UserError("This rollout doesn't wait to be continued.");
  const { rollouts, store, policy, policyVersion } = gateway;
  const { record } = planned.rollout;
  const all = await authorizeRollout(planned, interaction, gateway, "It stays stopped.");
  const targets = restOf(all, await rollouts.outcomes(record.id));
  const id = restIdOf(record.id);
  if (targets.length === 0) throw new UserError("No VM of this rollout is left.");
  const turn = { personId: interaction.userId, interactionId: id, limits: policy.limits };
  await store.takeTurn(turn);
  if (!(await store.useOnce(`rest:${record.id}`, keptMs)))
    return reply.privately(say(md`The rest of this rollout was already started: ${name(id)}.`));
  const {
    id: personId,
    teamId,
    name: called,
  } = await gateway.person(interaction.userId, interaction.teamId);
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
  const made = await rollouts.get(id);
  if (made)
    await rollouts.move(made, {
      state: "running",
      progress: { ...made.progress, startedAt: await rollouts.now() },
      record: rest,
      why: `the rest of ${record.id}`,
      actor: personId,
    });
}

/** As long as a rollout that has ended is kept. */
const keptMs = 90 * 24 * 3600_000;

/** The dialog from a button: for mentions, and triggers that were too old. */
async function openPlanned(
  planned: Planned | undefined,
  interaction: Press,
  reply: Reply,
  gateway: GatewayContext,
): Promise<void> {
  if (planned?.rollout.state !== "planned")
    throw new UserError(
      "This is too old, or was already started.",
      "Please run the command again.",
    );
  onlyRequester(planned, interaction);
  const targets = await authorizeRollout(planned, interaction, gateway);
  const { command, rollout } = planned;
  const { record } = rollout;
  const frozen = await frozenLine(gateway);
  const view = rolloutView({ command, record, targets, hasFile: false, frozen });
  if (!(await reply.open(view)))
    throw new UserError("That took too long to open.", "Press the button again.");
}
