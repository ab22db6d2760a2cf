import { hash } from "node:crypto";
import * as z from "zod";
import { UserError } from "../../errors.ts";
import { type ButtonSpec } from "../../messages/buttons.ts";
import { limits } from "../../messages/limits.ts";
import { channelLink, lines, md, plain } from "../../messages/markdown.ts";
import { paragraph } from "../../messages/parts.ts";
import { modal } from "../../messages/views.ts";
import { namesInWords } from "../../core/permit/access.ts";
import type { LackedRight } from "../../core/permit/permit.ts";
import { originKey } from "../../core/request/origin.ts";
import { describeChange } from "../../core/cards/asking.ts";
import { dottedName } from "../../registry/define.ts";
import { type Input, type Person, withTarget } from "../../registry/invocation.ts";
import { say } from "../../slack/error-reply.ts";
import type { Press, SubmissionResult, ViewSubmission } from "../../slack/receive/interaction.ts";
import { parseJson } from "../../text/parse-json.ts";
import { originOf } from "../../talk/act-origin.ts";
import { lackedRight } from "../../talk/authorize.ts";
import { reasonInput } from "../../talk/form-view.ts";
import {
  type Act,
  type BeforeAck,
  type GatewayContext,
  commandNamed,
  outdated,
  personOf,
} from "../../talk/gateway-context.ts";
import { openOr } from "../../talk/reply-with-error.ts";
import { askAction, proposingOf } from "../proposing.ts";

export const askCallback = "ask";

/** The button *Ask @oncall to do it* beside a refusal. None where nothing keeps proposals. */
export function askButton(
  { command, input, target, allowed }: LackedRight,
  gateway: GatewayContext,
): readonly ButtonSpec[] {
  if (proposingOf.ifAny(gateway) === undefined) return [];
  const whom = namesInWords(allowed, gateway.nameOf, 1);
  const label = `Ask ${whom} to do it`;
  const named = { command: dottedName(command), input: withTarget(command, input, target) };
  const value = JSON.stringify(named);
  if (value.length > limits.buttonValue) return [];
  const fits = label.length <= limits.buttonText;
  return [{ label: fits ? label : "Ask someone who can", action: askAction, value }];
}

/** What a form carries: names and IDs only, since everything is decided again. */
const formMeta = z.object({
  /** Identifies the button that opened it: one button makes one proposal. */
  id: z.string().regex(/^p-[0-9a-f]{16}$/),
  command: z.string(),
  input: z.record(z.string(), z.unknown()),
  channelId: z.string(),
});

/** Opens the form for the reason, for a person who still lacks the right. Throws UserError. */
export async function openAsk(act: Act<Press>, value: Input): Promise<void> {
  const { interaction, gateway } = act;
  const { channelId, userId } = interaction;
  const key = JSON.stringify([userId, originKey(originOf(act))]);
  const id = `p-${hash("sha256", key).slice(0, 16)}`;
  const read = formMeta.safeParse({ ...value, id, channelId });
  if (!read.success) throw outdated();
  const { lacked } = await readAsk(read.data, act);
  const { command, allowed } = lacked;
  const whom = namesInWords(allowed, gateway.nameOf);
  const summary = lines(
    md`*${describeChange(lacked, command)}*`,
    md`${whom} can run it by a press, in their own name and with the usual approvals. You are told the result.`,
  );
  const reason = reasonInput("Those you ask read it; recorded in the audit trail.");
  const form = { callback: askCallback, metadata: read.data, submit: "Ask" };
  await openOr(act, modal("Ask others", [paragraph(summary), reason], form));
}

/** Checks the form before the ack, while errors can still be shown on it. Throws UserError. */
export async function checkAsk(
  act: BeforeAck<ViewSubmission>,
): Promise<SubmissionResult | undefined> {
  if (reasonOf(act).length < 3) return { errors: { reason: "Enter a reason." } };
  await readAsk(metaOf(act), act);
  return undefined;
}

/** Asks, once for each button however often its form is submitted. Throws UserError. */
export async function submitAsk(act: Act<ViewSubmission>): Promise<void> {
  const { reply, gateway } = act;
  const { id, channelId: askedIn } = metaOf(act);
  const { lacked, asker } = await readAsk(metaOf(act), act);
  const asked = { id, asker, lacked, reason: reasonOf(act), channelId: askedIn };
  const { channelId, isNew } = await proposingOf(gateway).propose(asked, gateway);
  const whom = namesInWords(lacked.allowed, gateway.nameOf);
  const already = isNew ? "Asked" : "You already asked";
  await reply.privately(
    say(md`${already} ${whom} in ${channelLink(channelId)}; you are told the result.`),
  );
}

function metaOf({ interaction }: BeforeAck<ViewSubmission>): z.output<typeof formMeta> {
  const read = formMeta.safeParse(parseJson(interaction.privateMetadata));
  if (!read.success) throw outdated();
  return read.data;
}

const reasonOf = ({ interaction }: BeforeAck<ViewSubmission>) =>
  plain(interaction.values["reason"] ?? "", 500);

/** Decides again that this person lacks the right to the change, and nothing else. Throws UserError. */
async function readAsk(
  { command: dotted, input, channelId }: z.output<typeof formMeta>,
  act: BeforeAck<Press | ViewSubmission>,
): Promise<{ asker: Person; lacked: LackedRight }> {
  const { gateway } = act;
  const command = commandNamed(dotted, gateway);
  const asker = await personOf(act);
  const lacked = await lackedRight({ person: asker, command, input, channelId }, gateway);
  if (lacked) return { asker, lacked };
  throw new UserError(
    `You may run /${command.name} yourself now. Nobody was asked.`,
    "Type it again.",
  );
}
