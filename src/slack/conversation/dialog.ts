import * as z from "zod";
import { UserError } from "../../errors.ts";
import { section } from "../../messages/message.ts";
import { hintOf, lines, type Markdown, md, plain } from "../../messages/text.ts";
import { type ChangeCommand, isChange, type Target } from "../../registry/define.ts";
import { type Input, withTarget, type Person } from "../../registry/invocation.ts";
import { checkInput } from "../../registry/parse.ts";
import { type Argument, argumentsOf, flagName } from "../../registry/arguments.ts";
import type { StoredRequest } from "../../requests/journal/record.ts";
import { mayUndo } from "../../requests/render/render-card.ts";
import { mustApprove } from "../../requests/render/asking.ts";
import { needsWords } from "../../policy/need-words.ts";
import { isUsual } from "../../policy/vote-needs.ts";
import { parseJson } from "../web.ts";
import type { Reply, Submission, Interaction, Press } from "../receive/interaction.ts";
import { approversFor, tooFewApprovers } from "./approvers.ts";
import { authorize, type AskedFor, Refused } from "./authorize.ts";
import { type DialogMeta, dialogView, inputOf, modal, openView, titleOf } from "./dialog-view.ts";
import { frozenLine } from "./frozen.ts";
import type { GatewayContext } from "./gateway-context.ts";
import { resolveOne, withSnapshotId } from "../../requests/submit/resolve.ts";
import {
  gatherFacts,
  type Needed,
  neededApprovals,
  notNow,
  placeOf,
  submitChange,
} from "./submit-change.ts";

/** False when Slack didn't open it. */
export async function openDialog(
  command: ChangeCommand,
  target: Target,
  input: Input,
  interaction: Interaction,
  reply: Reply,
  gateway: GatewayContext,
  more: Pick<DialogMeta, "undoes" | "breakGlass"> = {},
): Promise<boolean> {
  const place = placeOf(interaction, gateway);
  const meta = {
    command: command.name,
    targetId: target.id,
    ...place,
    ...onceOf(interaction),
    ...more,
  };
  const make = async () => {
    const undone = await undoneBy(meta, gateway);
    return makeDialog({ command, target, input, meta, undone }, interaction.userId, gateway);
  };
  return openView(titleOf(command), make, reply, gateway.log);
}

/** A form that the button of a card opened makes one request. */
function onceOf({ id }: Interaction): Pick<DialogMeta, "once"> {
  return id.startsWith("after:") ? { once: id } : {};
}

async function makeDialog(
  { command, target, input, meta, undone }: Form,
  requesterId: string,
  gateway: GatewayContext,
) {
  const facts = await gatherFacts(command, target, input, gateway);
  const needed =
    meta.breakGlass === undefined
      ? neededApprovals(command, target, facts, gateway)
      : { ...neededApprovals(command, target, facts, gateway), required: 0, votes: [] };
  // No form for what would be refused once it is filled in
  const refused = notNow(command, facts) ?? (await tooFewApprovers(needed, requesterId, gateway));
  if (refused)
    return modal(titleOf(command), [section(lines(md`${refused.text}`, hintOf(refused.hint)))]);
  const approvals = await approvalWords(needed, requesterId, gateway);
  const frozen = await frozenLine(gateway);
  return dialogView({ command, facts, meta, approvals, undone, frozen, now: gateway.now() });
}

async function approvalWords(
  { required, votes, raised }: Needed,
  requesterId: string,
  gateway: GatewayContext,
): Promise<Markdown | undefined> {
  if (required === 0) return undefined;
  const more = raised ? ` One more than usual: ${raised}.` : "";
  if (!isUsual(gateway.policy, votes)) {
    await gateway.learnNames(votes.flatMap(({ from }) => from));
    return md`${needsWords(votes, gateway.nameOf)}${more}`;
  }
  const who = await approversFor(votes, requesterId, gateway);
  const names = who?.map((one) => one.name);
  return md`${mustApprove(required, names)}${more}`;
}

/** The errors of a submitted dialog by field; undefined when there are none. Changes nothing. */
export async function checkDialog(
  interaction: Submission,
  gateway: GatewayContext,
): Promise<{ errors: Record<string, string> } | undefined> {
  try {
    const form = await readDialog(interaction, gateway);
    const errors = fieldErrors(form, interaction);
    if (Object.keys(errors).length > 0) return { errors };
    await authorize(askedIn(form, form.person), gateway);
    return undefined;
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    // Nothing to show it on: the submission is refused for the same reason
    if (Object.keys(interaction.values).length === 0) return undefined;
    const field = error instanceof Refused ? lastField(interaction) : firstField(interaction);
    return { errors: { [field]: error.message } };
  }
}

/** Stores the request, after the ack. Reads the facts again: those shown may be minutes old. */
export async function submitDialog(
  interaction: Submission,
  reply: Reply,
  gateway: GatewayContext,
): Promise<void> {
  const form = await readDialog(interaction, gateway);
  const { command, meta, target, input, person } = form;
  const facts = await gatherFacts(command, target, input, gateway);
  const refused = notNow(command, facts);
  if (refused) throw new UserError(refused.text, refused.hint);
  const reason = reasonIn(interaction);
  await submitChange(
    {
      command,
      input,
      target,
      person,
      channelId: meta.channelId || person.id,
      via: "modal",
      interactionId: meta.once ?? interaction.id,
      ...(reason === "" ? {} : { reason }),
      ...(form.undone ? { undoes: form.undone.record.id } : {}),
      ...(meta.threadTs ? { threadTs: meta.threadTs } : {}),
      ...(meta.sealedResponseUrl ? { sealedResponseUrl: meta.sealedResponseUrl } : {}),
    },
    facts,
    reply,
    gateway,
  );
}

/** A choice changed which inputs the form shows. */
export async function refreshDialog(
  interaction: Press,
  reply: Reply,
  gateway: GatewayContext,
): Promise<void> {
  const { view, viewId } = interaction;
  if (!view || viewId === undefined) return;
  const form = await readForm(view.privateMetadata, view.values, gateway);
  const person = await gateway.person(interaction.userId, interaction.teamId);
  await authorize(askedIn(form, person), gateway);
  const { values: _carried, ...meta } = form.meta;
  await reply.update(viewId, await makeDialog({ ...form, meta }, person.id, gateway), view.hash);
}

/** For `authorize`. */
export const emergency = { breakGlass: true, notedAs: "break-glass: " } as const;

function askedIn({ command, input, target, meta, undone }: Form, person: Person): AskedFor {
  const { channelId } = meta;
  const asked = { command, input, targets: [target], person, channelId };
  if (meta.breakGlass !== undefined) return { ...asked, ...emergency };
  return undone ? { ...asked, isUndo: true } : asked;
}

type Meta = DialogMeta & { values?: Input };

const metaSchema: z.ZodType<Meta> = z.object({
  command: z.string(),
  targetId: z.string(),
  channelId: z.string(),
  threadTs: z
    .string()
    .regex(/^\d{1,20}\.\d{1,20}$/)
    .exactOptional(),
  sealedResponseUrl: z.string().exactOptional(),
  values: z.record(z.string(), z.unknown()).exactOptional(),
  undoes: z.string().max(40).exactOptional(),
  once: z.string().max(80).exactOptional(),
  breakGlass: z.string().max(300).exactOptional(),
});

export interface Form {
  command: ChangeCommand;
  meta: Meta;
  target: Target;
  input: Input;
  undone?: StoredRequest | undefined;
}

/** The request that a form undoes, while that is offered. Throws UserError. */
async function undoneBy(
  { undoes, targetId }: DialogMeta,
  { store }: Pick<GatewayContext, "store">,
): Promise<StoredRequest | undefined> {
  if (undoes === undefined) return undefined;
  const undone = await store.get(undoes);
  if (undone?.record.target.id === targetId && mayUndo(undone, await store.now())) return undone;
  throw new UserError("This can no longer be undone from here.");
}

export async function readDialog(
  interaction: Submission,
  gateway: GatewayContext,
): Promise<Form & { person: Person }> {
  const form = await readForm(interaction.privateMetadata, interaction.values, gateway);
  const { command, target } = form;
  const input = await withSnapshotId(command, form.input, target, gateway);
  const person = await gateway.person(interaction.userId, interaction.teamId);
  return { ...form, input: withTarget(command, input, target), person };
}

async function readForm(
  privateMetadata: string,
  values: Submission["values"],
  gateway: GatewayContext,
): Promise<Form> {
  const read = metaSchema.safeParse(parseJson(privateMetadata));
  // Not a console's request: that has no dialog
  const command = gateway.commands.filter(isChange).find(({ name }) => name === read.data?.command);
  if (!read.success || !command)
    throw new UserError("This dialog no longer works. Please run the command again.");
  const meta = read.data;
  const undone = await undoneBy(meta, gateway);
  const written = inputOf(command, meta.values ?? {}, values);
  const input = undone ? { snapshot: undone.progress.safety?.snapshotId } : written;
  const named = withTarget(command, input, { id: meta.targetId });
  const target = await resolveOne({ command, input: named }, gateway);
  return { command, meta, target, input, undone };
}

function fieldErrors(
  { command, target, input, meta }: Form,
  interaction: Submission,
): Record<string, string> {
  // Without a prototype: a block may be called "constructor"
  const errors = Object.create(null) as Record<string, string>;
  const checked = checkInput(command, input);
  const fields = new Map(argumentsOf(command).map((argument) => [argument.key, argument]));
  for (const { key, text } of "problems" in checked ? checked.problems : []) {
    const field = fields.get(key);
    const block =
      field && `arg:${key}` in interaction.values ? `arg:${key}` : firstField(interaction);
    errors[block] ??= field ? onForm(field, text) : text;
  }
  if (command.class !== "destroy" && meta.breakGlass === undefined) return errors;
  // Compared as shown: invisible characters can't be typed
  const typed = plain(interaction.values["confirm"] ?? "", 300);
  if (typed === "" || typed !== plain(target.name, 300))
    errors["confirm"] = `Type ${target.name} exactly as shown.`;
  if (reasonIn(interaction).length < 3) errors["reason"] = "Enter a reason: approvers read it.";
  return errors;
}

export function reasonIn({ values }: Submission): string {
  return String(values["reason"] ?? "").trim();
}

/** With the label instead of the flag: `--cpu must be…` becomes `CPU must be…`. */
function onForm({ key, label }: Argument, text: string): string {
  const written = [`${flagName(key)} `, `${key} `].find((start) => text.startsWith(start));
  return written ? `${label} ${text.slice(written.length)}` : text;
}

/** Errors can only be shown on existing inputs. */
function firstField({ values }: Submission): string {
  return Object.keys(values)[0] ?? "reason";
}

/** Next to the Submit button. */
function lastField({ values }: Submission): string {
  return Object.keys(values).at(-1) ?? "reason";
}
