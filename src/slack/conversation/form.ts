import type { ModalView } from "@slack/types";
import { UserError } from "../../errors.ts";
import {
  type Message,
  buttons,
  counted,
  csv,
  hintOf,
  lines,
  md,
  name,
  plain,
  section,
  sentence,
} from "../../messages/message.ts";
import { needsWords } from "../../policy/approval-rule.ts";
import type { Asking, Permit } from "../../policy/permit.ts";
import {
  type Argument,
  type ChangeCommand,
  type Target,
  argumentsOf,
  flagName,
  isChange,
} from "../../registry/define.ts";
import {
  type ChangeInvocation,
  type Input,
  type Rolling,
  rollingArgs,
  rollingOf,
  withTarget,
  withoutRolling,
} from "../../registry/invocation.ts";
import { checkInput } from "../../registry/parse.ts";
import type { StoredRequest } from "../../requests/journal/stored-request.ts";
import { savedBy } from "../../requests/journal/saved-by.ts";
import { mustApprove } from "../../requests/render/asking.ts";
import { mayUndo } from "../../requests/render/render-card.ts";
import { withSnapshotId } from "../../requests/submit/resolve-snapshot.ts";
import { type Several, resolveOne } from "../../requests/submit/resolve-targets.ts";
import type { RolloutRecord } from "../../rollouts/rollout.ts";
import { errorReply, say } from "../error-reply.ts";
import { textAt } from "../json.ts";
import type { Press, ViewSubmission, SubmissionResult } from "../receive/interaction.ts";
import { parseJson } from "../../text/parse-json.ts";
import { sendFile } from "./answer.ts";
import { Refused, authorize, authorizeTargets, emergency, frozenLine } from "./authorize.ts";
import { gatherFacts, notNow, pinnedAmong } from "./dialog-facts.ts";
import {
  type FormMeta,
  asksNumber,
  formMeta,
  formOfMany,
  formOfOne,
  maxListed,
  modal,
  rolloutCallback,
  titleOf,
} from "./form-view.ts";
import { type Act, type BeforeAck, type GatewayContext, personOf } from "./gateway-context.ts";
import { approversOf } from "./approvers-of.ts";
import { permitByFacts } from "./permit-by-facts.ts";
import { planRollout } from "./plan-rollout.ts";
import { type Planned, authorizePlan, begin, findPlanned, onlyRequester } from "./press-rollout.ts";
import { placeOf, submitChange } from "./submit-change.ts";
import { openReview } from "./vote.ts";
import { undoneBy } from "../../requests/journal/origin.ts";
import { originOf } from "./act-origin.ts";
import { callOf } from "../../requests/journal/stage.ts";

/** The form of a permitted change of one target. False when Slack didn't open it. */
export async function openForm(
  permit: Permit,
  act: Act,
  more: Pick<FormMeta, "breakGlass"> = {},
): Promise<boolean> {
  const { gateway, origin } = act;
  const { command, target } = permit;
  const meta = {
    command: command.name,
    targetId: target.id,
    ...placeOf(act.interaction),
    ...(origin ? { origin } : {}),
    ...more,
  };
  const make = async () => viewOfOne(permit, meta, await undoneByForm(meta, gateway), gateway);
  return openView(titleOf(command), make, act);
}

/** The form of several VMs: shows the plan, and runs nothing before it is confirmed. */
export async function proposeRollout(
  invocation: ChangeInvocation,
  several: Several,
  asking: Asking<ChangeCommand>,
  act: Act,
): Promise<void> {
  const { reply, gateway } = act;
  const { command } = invocation;
  const title = plain(`${command.say.verb} ${counted(several.targets.length, "VM")}`, 24);
  const make = async () => {
    const { record, targets } = await planRollout(invocation, several, asking, act);
    const hasFile = await sendList(targets, act);
    const [frozen, pinned] = await Promise.all([
      frozenLine(gateway),
      pinnedAmong(targets, gateway),
    ]);
    return formOfMany(command, record, targets, { frozen, pinned, hasFile });
  };
  if (await openView(title, make, act)) return;
  const { record } = await planRollout(invocation, several, asking, act);
  await reply.privately(pressToReview(record, command));
}

/**
 * Opens immediately, because a trigger expires in three seconds and reading may take longer; then shows what `make`
 * returns, or its error. False when Slack didn't open it.
 */
async function openView(
  title: string,
  make: () => Promise<ModalView>,
  { reply, gateway }: Act,
): Promise<boolean> {
  const viewId = await reply.open(modal(title, [section(md`Loading the current state…`)]));
  if (viewId === undefined) return false;
  try {
    await reply.update(viewId, await make());
  } catch (error) {
    const { text } = errorReply(error, gateway.log);
    await reply.update(viewId, modal(title, [section(md`${text}`)]));
  }
  return true;
}

function pressToReview(record: RolloutRecord, command: ChangeCommand): Message {
  const what = md`${command.say.verb} ${counted(record.total, "VM")} (${name(record.words)})?`;
  const how = md`Press the button to see the plan; nothing happens until you confirm it.`;
  const value = JSON.stringify({ roll: record.id });
  const review = { label: `Review ${counted(record.total, "VM")}`, action: "roll:open", value };
  return sentence(lines(what, how), buttons([review]));
}

/** Too many for a form: the list as a file, to the requester only. */
async function sendList(targets: readonly Target[], act: Act): Promise<boolean> {
  if (targets.length <= maxListed) return false;
  const rows = targets.map((target) => {
    return [target.name, target.projectName ?? target.projectId, target.status, target.id];
  });
  const title = `${targets.length} VMs`;
  const content = csv([["VM", "Project", "Status", "ID"], ...rows]);
  return sendFile({ name: "vms.csv", title, content }, act);
}

async function viewOfOne(
  given: Permit,
  meta: FormMeta,
  undone: StoredRequest | undefined,
  gateway: GatewayContext,
): Promise<ModalView> {
  const { command, target, input } = given;
  const facts = await gatherFacts(command, target, input, gateway);
  const permit = await permitByFacts(given, facts, gateway);
  // No form for what would be refused once it is filled in
  const { refused: few, who, needs } = await approversOf(permit, gateway);
  const refused = notNow(command, facts) ?? few;
  if (refused)
    return modal(titleOf(command), [section(lines(md`${refused.text}`, hintOf(refused.hint)))]);
  const { required, votes, raised } = permit.approvals;
  const names = who?.map((one) => one.name);
  const from = needs ? needsWords(votes, gateway.nameOf) : mustApprove(required, names);
  const more = raised ? ` One more than usual: ${raised}.` : "";
  const approvals = required > 0 ? md`${from}${more}` : undefined;
  const frozen = await frozenLine(gateway);
  return formOfOne({ command, facts, meta, approvals, undone, frozen, now: gateway.now() });
}

/** The errors of a submitted form by field; undefined when there are none. Changes nothing; throws UserError. */
export async function checkForm(
  act: BeforeAck<ViewSubmission>,
): Promise<SubmissionResult | undefined> {
  const form = await readForm(act);
  if ("rollout" in form && form.rollout.state !== "planned") return undefined;
  const errors = fieldErrors(form, act.interaction.values);
  if (Object.keys(errors).length > 0) return { errors };
  await ("rollout" in form ? authorizePlan(form, act) : authorizeOne(form, act.gateway));
  return undefined;
}

/** Errors can only be shown on existing inputs: a refusal next to the Submit button, everything else on the first. */
export function fieldError(error: UserError, values: Values): SubmissionResult {
  const field = error instanceof Refused ? Object.keys(values).at(-1) : firstField(values);
  return { errors: { [field ?? "reason"]: error.message } };
}

/** Stores the request or starts the rollout, after the ack. What was decided and shown may be minutes old. */
export async function submitForm(act: Act<ViewSubmission>): Promise<void> {
  const form = await readForm(act, { isSubmitted: true });
  return "rollout" in form ? submitPlanned(form, act) : submitOne(form, act);
}

async function submitOne(form: FormOfOne, act: Act<ViewSubmission>): Promise<void> {
  const { asking, input, target, meta } = form;
  const { command, person } = asking;
  const { interaction, gateway } = act;
  const isEmergency = meta.breakGlass !== undefined;
  const facts = await gatherFacts(command, target, input, gateway);
  const refused = isEmergency ? undefined : notNow(command, facts);
  if (refused) throw new UserError(refused.text, refused.hint);
  const vmNames = facts.vms.map((vm) => vm.name);
  const permit = await authorizeTargets(asking, { targets: [target], input, vmNames }, gateway);
  const reason = textIn(interaction.values, "reason");
  const made = {
    channelId: meta.channelId || person.id,
    origin: meta.origin ?? originOf(act),
    ...(reason === "" ? {} : { reason }),
    ...(meta.threadTs ? { threadTs: meta.threadTs } : {}),
  };
  const { id } = await submitChange(permit, made, act, facts);
  if (isEmergency) await openReview(id, permit, { reason, facts }, gateway);
}

/** Starts the rollout; idempotent. */
async function submitPlanned(planned: PlannedForm, act: Act<ViewSubmission>): Promise<void> {
  const { interaction, reply, gateway } = act;
  const { rollout, input, options } = planned;
  const { record } = rollout;
  const { limits } = gateway.policy;
  let isStarted = false;
  if (rollout.state === "planned") {
    const permit = await authorizePlan(planned, act);
    // Counts as one request, however many VMs: a person confirmed their number
    const personId = interaction.userId;
    await gateway.store.countAgainstLimits({ personId, holder: interaction.id, limits });
    const changed = { ...record, input, options };
    isStarted = await begin(permit, rollout, changed, `confirmed: ${record.words}`, gateway);
  }
  if (!isStarted)
    await reply.privately(say(md`You already requested this: ${name(record.id)} is in progress.`));
}

/** A choice changed which inputs the form shows. */
export async function refreshForm({ interaction, reply, gateway }: Act<Press>): Promise<void> {
  const { view, viewId } = interaction;
  if (!view || viewId === undefined) return;
  const form = await readForm({ interaction: { ...interaction, ...view }, gateway });
  if ("rollout" in form) return;
  const permit = await authorizeOne(form, gateway);
  const { values: _carried, ...meta } = form.meta;
  await reply.update(viewId, await viewOfOne(permit, meta, form.undone, gateway), view.hash);
}

interface FormOfOne {
  asking: Asking<ChangeCommand>;
  command: ChangeCommand;
  meta: FormMeta;
  target: Target;
  input: Input;
  undone?: StoredRequest | undefined;
}

/** The command's own arguments and the rollout's options, as written in the form. */
type PlannedForm = Planned & { input: Input; options: Rolling };

type Form = FormOfOne | PlannedForm;

/** What of a form comes back; a pressed input of it brings the same. */
type Filled = Pick<ViewSubmission, "userId" | "teamId" | "callback" | "privateMetadata" | "values">;

/**
 * Whoever submits it is asked for again, before its target is looked up. Throws UserError where that is no longer there, and
 * Refused.
 */
async function readForm(
  { interaction, gateway }: BeforeAck<Filled>,
  { isSubmitted = false } = {},
): Promise<Form> {
  const { callback, privateMetadata, values } = interaction;
  if (callback === rolloutCallback) {
    const planned = await findPlanned(textAt(parseJson(privateMetadata), "roll"), gateway);
    if (!planned) throw new UserError("This dialog is out of date. Please run the command again.");
    onlyRequester(planned, interaction);
    const { command, rollout } = planned;
    const input = withoutRolling(command, inputOf(command, rollout.record.input, values));
    return { ...planned, input, options: optionsIn(values, planned) };
  }
  const read = formMeta.safeParse(parseJson(privateMetadata));
  // Not a console's request: that has no form
  const command = gateway.commands.filter(isChange).find((one) => one.name === read.data?.command);
  if (!read.success || !command)
    throw new UserError("This dialog no longer works. Please run the command again.");
  const meta = read.data;
  const undone = await undoneByForm(meta, gateway);
  const written = inputOf(command, meta.values ?? {}, values);
  const input = undone ? { snapshot: callOf(undone.stage)?.safety?.snapshotId } : written;
  const named = withTarget(command, input, { id: meta.targetId });
  const isEmergency = meta.breakGlass !== undefined;
  const saved = undone && savedBy(undone);
  const basis = isEmergency ? emergency : saved ? ({ kind: "undo", saved } as const) : undefined;
  const person = await personOf({ interaction, gateway }, { fresh: isSubmitted && isEmergency });
  const { channelId } = meta;
  const asking = await authorize({ command, input: named, person, channelId, basis }, gateway);
  const target = await resolveOne(asking, { command, input: named }, gateway);
  const exact = await withSnapshotId(command, input, target, gateway);
  return { asking, command, meta, target, input: withTarget(command, exact, target), undone };
}

/** The request that a form undoes, while that is offered. Throws UserError. */
async function undoneByForm({ origin, targetId }: FormMeta, { store }: GatewayContext) {
  const undoes = origin && undoneBy({ origin });
  if (undoes === undefined) return undefined;
  const undone = await store.get(undoes);
  if (undone?.record.target.id === targetId && mayUndo(undone, await store.now())) return undone;
  throw new UserError("This can no longer be undone from here.");
}

function authorizeOne({ asking, input, target }: FormOfOne, gateway: GatewayContext) {
  return authorizeTargets(asking, { targets: [target], input }, gateway);
}

type Values = ViewSubmission["values"];

/** The form's values as arguments, without empty ones; a ticked box is true. */
function inputOf(command: ChangeCommand, carried: Input, values: Values): Input {
  const input = { ...carried };
  for (const { key, isSwitch } of argumentsOf(command)) {
    const value = values[`arg:${key}`];
    if (isSwitch && isTicked(value)) input[key] = true;
    if (!isSwitch && typeof value === "string" && value.trim() !== "") input[key] = value.trim();
  }
  return input;
}

function isTicked(value: Values[string]): boolean {
  return Array.isArray(value) ? value.length > 0 : value !== undefined && value !== "";
}

function optionsIn(values: Values, { rollout, command }: Planned): Rolling {
  const rolling = {
    maxUnavailable: textIn(values, "roll:most"),
    canary: isTicked(values["roll:canary"]),
    stopOnFailure: textIn(values, "roll:failures"),
  };
  return rollingOf(command, rolling, rollout.record.total);
}

function textIn(values: Values, field: string): string {
  return String(values[field] ?? "").trim();
}

function fieldErrors(form: Form, values: Values): Record<string, string> {
  const { command, input } = form;
  // Without a prototype: a block may be called "constructor"
  const errors = Object.create(null) as Record<string, string>;
  // Any target will do for several: this checks everything else
  const whole = "rollout" in form ? withTarget(command, input, { id: "any" }) : input;
  const checked = checkInput(command, whole);
  const fields = new Map(argumentsOf(command).map((argument) => [argument.key, argument]));
  for (const { key, text } of "problems" in checked ? checked.problems : []) {
    const field = fields.get(key);
    const block = field && `arg:${key}` in values ? `arg:${key}` : firstField(values);
    errors[block] ??= field ? onForm(field, text) : text;
  }
  Object.assign(errors, "rollout" in form ? rollingErrors(form, values) : nameErrors(form, values));
  return errors;
}

function rollingErrors({ rollout: { record } }: Planned, values: Values): Record<string, string> {
  const errors: Record<string, string> = {};
  if (!rollingArgs.maxUnavailable.safeParse(textIn(values, "roll:most")).success)
    errors["roll:most"] = "A whole number from 1, or a percentage like 10%.";
  if (!rollingArgs.stopOnFailure.safeParse(textIn(values, "roll:failures")).success)
    errors["roll:failures"] = "A whole number from 1 to 1,000.";
  if (asksNumber(record) && textIn(values, "roll:number") !== String(record.total))
    errors["roll:number"] = `Type ${record.total}: the number of VMs that will change.`;
  return errors;
}

function nameErrors({ command, target, meta }: FormOfOne, values: Values): Record<string, string> {
  if (command.class !== "destroy" && meta.breakGlass === undefined) return {};
  const errors: Record<string, string> = {};
  // Compared as shown: invisible characters can't be typed
  const typed = plain(values["confirm"] ?? "", 300);
  if (typed === "" || typed !== plain(target.name, 300))
    errors["confirm"] = `Type ${target.name} exactly as shown.`;
  if (textIn(values, "reason").length < 3) errors["reason"] = "Enter a reason: approvers read it.";
  return errors;
}

/** With the label instead of the flag: `--cpu must be…` becomes `CPU must be…`. */
function onForm({ key, label }: Argument, text: string): string {
  const written = [`${flagName(key)} `, `${key} `].find((start) => text.startsWith(start));
  return written ? `${label} ${text.slice(written.length)}` : text;
}

function firstField(values: Values): string {
  return "roll:most" in values ? "roll:most" : (Object.keys(values)[0] ?? "reason");
}
