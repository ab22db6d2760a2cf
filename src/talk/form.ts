import type { Journal } from "../core/request/journal.ts";
import { plainForm } from "../text/fold.ts";
import type { ModalView } from "@slack/types";
import { UserError } from "../errors.ts";
import { hintOf, lines, md, plain } from "../messages/markdown.ts";
import { paragraph } from "../messages/parts.ts";
import { modal } from "../messages/views.ts";
import { type Asking, type Permit, breakGlassBasis, specify } from "../core/permit/permit.ts";
import {
  type Argument,
  type ChangeCommand,
  type Target,
  argumentsOf,
  flagName,
  isChange,
} from "../registry/define.ts";
import { type Input, withIds, withTarget } from "../registry/invocation.ts";
import { checkInput } from "../registry/parse.ts";
import type { StoredRequest } from "../core/request/stored-request.ts";
import { basisToUndo, savedBy } from "../core/request/saved-by.ts";
import { mayUndo } from "../core/cards/render-card.ts";
import { resolveOne } from "../core/submit/resolve-targets.ts";
import { errorReply } from "../slack/error-reply.ts";
import type { Press, ViewSubmission, SubmissionResult } from "../slack/receive/interaction.ts";
import { parseJson } from "../text/parse-json.ts";
import { Refused, authorize, authorizeTargets, frozenLine } from "./authorize.ts";
import { gatherFacts, notNow } from "./dialog-facts.ts";
import { type FormMeta, formMeta, formOfOne, titleOf, dialogCallback } from "./form-view.ts";
import {
  type Act,
  type BeforeAck,
  type GatewayContext,
  outdated,
  personOf,
} from "./gateway-context.ts";
import { type Rehearsing, rehearsalOf } from "./service-keys.ts";
import { approvalWords, approversOf } from "./approvers-of.ts";
import { permitByFacts } from "./permit-by-facts.ts";
import { placeOf, submitChange } from "./submit-change.ts";
import { undoneBy } from "../core/request/origin.ts";
import { originOf } from "./act-origin.ts";
import { emergencyWordsOf, noEmergency } from "../registry/emergency.ts";

/** Opens the form of a permitted change of one target. False when Slack didn't open it. */
export async function openForm(
  permit: Permit,
  act: Act,
  more: Pick<FormMeta, "breakGlass" | "reason"> = {},
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

/**
 * Opens a modal at once, because a trigger expires in three seconds and reading may take longer.
 * The modal then shows what `make` returns, or its error. False when Slack didn't open it.
 */
export async function openView(
  title: string,
  make: () => Promise<ModalView>,
  { reply, gateway }: Act,
): Promise<boolean> {
  const viewId = await reply.open(modal(title, [paragraph(md`Loading the current state…`)]));
  if (viewId === undefined) return false;
  try {
    await reply.update(viewId, await make());
  } catch (error) {
    const { text } = errorReply(error, gateway.log);
    await reply.update(viewId, modal(title, [paragraph(md`${text}`)]));
  }
  return true;
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
  // Show the refusal instead of a form that would be refused once it is filled in.
  const approvers = await approversOf(permit, meta.origin, gateway);
  const refused = notNow(command, facts) ?? approvers.refused;
  if (refused)
    return modal(titleOf(command), [paragraph(lines(md`${refused.text}`, hintOf(refused.hint)))]);
  const words = approvalWords(permit, approvers, gateway);
  const approvals = words === undefined ? undefined : md`${words}`;
  const frozen = await frozenLine(gateway);
  const emergency = emergencyWordsOf.ifAny(gateway);
  const isRehearsed = rehearsalOf.ifAny(gateway) !== undefined;
  const stands = { approvals, undone, frozen, emergency, isRehearsed, now: gateway.now() };
  return formOfOne({ command, facts, meta, ...stands });
}

/**
 * Checks a submitted form before the ack and changes nothing. Returns errors by field; undefined
 * when there are none. Throws UserError.
 */
export async function checkForm(
  act: BeforeAck<ViewSubmission>,
): Promise<SubmissionResult | undefined> {
  const form = await readForm(act);
  const { command, input } = form;
  const { values } = act.interaction;
  const errors = { ...argumentErrors(command, input, values), ...nameErrors(form, values) };
  if (Object.keys(errors).length > 0) return { errors };
  await authorizeOne(form, act.gateway);
  return undefined;
}

/**
 * Shows an error on an input, the only place Slack has for it: a refusal next to the Submit button,
 * everything else on the first input.
 */
export function fieldError(
  error: UserError,
  values: Values,
  first = Object.keys(values)[0],
): SubmissionResult {
  const field = error instanceof Refused ? Object.keys(values).at(-1) : first;
  return { errors: { [field ?? "reason"]: error.message } };
}

/**
 * Stores the request, after the ack. Everything is read and decided again, because the form may
 * have been open for minutes.
 */
export async function submitForm(act: Act<ViewSubmission>): Promise<void> {
  const { asking, input, target, meta } = await readForm(act, { isSubmitted: true });
  const { command, person } = asking;
  const { interaction, gateway } = act;
  const isEmergency = meta.breakGlass !== undefined;
  const facts = await gatherFacts(command, target, input, gateway);
  const refused = isEmergency ? undefined : notNow(command, facts);
  if (refused) throw new UserError(refused.text, refused.hint);
  const about = { targets: [target], input, vms: facts.vms };
  const permit = await authorizeTargets(asking, about, gateway);
  const reason = textIn(interaction.values, "reason");
  const made = {
    channelId: meta.channelId || person.id,
    origin: meta.origin ?? originOf(act),
    ...(reason === "" ? {} : { reason }),
    ...(meta.threadTs ? { threadTs: meta.threadTs } : {}),
  };
  await submitChange(permit, made, act, facts);
}

/** Redraws the form after a choice that changes which inputs it shows. */
export async function refreshForm({ interaction, reply, gateway }: Act<Press>): Promise<void> {
  const { view, viewId } = interaction;
  if (!view || viewId === undefined || view.callback !== dialogCallback) return;
  const form = await readForm({ interaction: { ...interaction, ...view }, gateway });
  const permit = await authorizeOne(form, gateway);
  const { values: _carried, ...meta } = form.meta;
  await reply.update(viewId, await viewOfOne(permit, meta, form.undone, gateway), view.hash);
}

/**
 * Returns the permit for what an open form asks for, as it is filled in now, for features with a
 * button in forms. Throws like a submission.
 */
export async function permitOfForm({ interaction, gateway }: Act<Press>): Promise<Rehearsing> {
  const { view } = interaction;
  if (view?.callback !== dialogCallback) throw outdated();
  const form = await readForm({ interaction: { ...interaction, ...view }, gateway });
  const permit = specify(await authorizeOne(form, gateway), form.input);
  return { permit, origin: form.meta.origin };
}

interface FormOfOne {
  asking: Asking<ChangeCommand>;
  command: ChangeCommand;
  meta: FormMeta;
  target: Target;
  input: Input;
  undone?: StoredRequest | undefined;
}

/**
 * The parts of a form that come back. A press of an input brings the same parts as a submission.
 */
type Filled = Pick<ViewSubmission, "userId" | "teamId" | "privateMetadata" | "values">;

/**
 * Reads a form back and authorizes its person again, before the target is looked up. Throws
 * UserError when the command or the target is gone, and Refused.
 */
async function readForm(
  { interaction, gateway }: BeforeAck<Filled>,
  { isSubmitted = false } = {},
): Promise<FormOfOne> {
  const { privateMetadata, values } = interaction;
  const read = formMeta.safeParse(parseJson(privateMetadata));
  // Only change commands have a form; the request of a console has none.
  const command = gateway.commands
    .filter(isChange)
    .find((candidate) => candidate.name === read.data?.command);
  if (!read.success || !command)
    throw new UserError("This dialog no longer works. Please run the command again.");
  const meta = read.data;
  const undone = await undoneByForm(meta, gateway);
  const written = inputOf(command, meta.values ?? {}, values);
  const input = undone ? { snapshot: savedBy(undone)?.snapshotId } : written;
  const named = withTarget(command, input, { id: meta.targetId });
  const isEmergency = meta.breakGlass !== undefined;
  if (isEmergency && !emergencyWordsOf.ifAny(gateway)) throw noEmergency();
  const basis = isEmergency ? breakGlassBasis : basisToUndo(undone);
  const person = await personOf({ interaction, gateway }, { fresh: isSubmitted && isEmergency });
  const { channelId } = meta;
  const asking = await authorize({ command, input: named, person, channelId, basis }, gateway);
  const target = await resolveOne(asking, { command, input: named }, gateway);
  const exact = await withIds(command, input, target, gateway);
  return { asking, command, meta, target, input: withTarget(command, exact, target), undone };
}

/**
 * The request that a form undoes, if the form undoes one. Throws UserError when that can no longer
 * be undone.
 */
async function undoneByForm({ origin, targetId }: FormMeta, { store }: { store: Journal }) {
  const undoes = origin && undoneBy({ origin });
  if (undoes === undefined) return undefined;
  const undone = await store.get(undoes);
  if (undone?.record.target.id === targetId && mayUndo(undone, await store.now())) return undone;
  throw new UserError("This can no longer be undone from here.");
}

function authorizeOne({ asking, input, target }: FormOfOne, gateway: GatewayContext) {
  return authorizeTargets(asking, { targets: [target], input }, gateway);
}

export type Values = ViewSubmission["values"];

/** The form's values as arguments, without empty ones. A ticked box is `true`. */
export function inputOf(command: ChangeCommand, carried: Input, values: Values): Input {
  const input = { ...carried };
  for (const { key, isSwitch } of argumentsOf(command)) {
    const value = values[`arg:${key}`];
    if (isSwitch && isTicked(value)) input[key] = true;
    if (!isSwitch && typeof value === "string" && value.trim() !== "") input[key] = value.trim();
  }
  return input;
}

export function isTicked(value: Values[string]): boolean {
  return Array.isArray(value) ? value.length > 0 : value !== undefined && value !== "";
}

export function textIn(values: Values, field: string): string {
  return String(values[field] ?? "").trim();
}

/**
 * Errors of the arguments by field. An argument that the form doesn't show has its error on the
 * first field.
 */
export function argumentErrors(
  command: ChangeCommand,
  input: Input,
  values: Values,
  first = Object.keys(values)[0] ?? "reason",
): Record<string, string> {
  // The object has no prototype, because a field may be called "constructor".
  const errors = Object.create(null) as Record<string, string>;
  const checked = checkInput(command, input);
  const fields = new Map(argumentsOf(command).map((argument) => [argument.key, argument]));
  for (const { key, text } of "problems" in checked ? checked.problems : []) {
    const field = fields.get(key);
    const block = field && `arg:${key}` in values ? `arg:${key}` : first;
    errors[block] ??= field ? onForm(field, text) : text;
  }
  return errors;
}

function nameErrors({ command, target, meta }: FormOfOne, values: Values): Record<string, string> {
  if (command.class !== "destroy" && meta.breakGlass === undefined) return {};
  const errors: Record<string, string> = {};
  // Compare the names as they are shown: nobody can type invisible characters.
  const [typed, shown] = [values["confirm"] ?? "", target.name].map((it) =>
    plainForm(plain(it, 300)),
  );
  if (typed === "" || typed !== shown) errors["confirm"] = `Type ${target.name} exactly as shown.`;
  if (textIn(values, "reason").length < 3) errors["reason"] = "Enter a reason: approvers read it.";
  return errors;
}

/** Names the argument by its label instead of its flag: `--cpu must be…` becomes `CPU must be…`. */
function onForm({ key, label }: Argument, text: string): string {
  const written = [`${flagName(key)} `, `${key} `].find((start) => text.startsWith(start));
  return written ? `${label} ${text.slice(written.length)}` : text;
}
