import { findChannel } from "../slack/find-channel.ts";
import type { ReadContext } from "../commands/context.ts";
import type { Message } from "../messages/blocks.ts";
import { withParts } from "../messages/card.ts";
import { buttonsOf } from "../messages/pressed-buttons.ts";
import { howToOpen } from "../messages/channel-errors.ts";
import { Markdown, md, name } from "../messages/markdown.ts";
import { waysRow, small } from "../messages/parts.ts";
import { type Asking, type ServiceAsking, mayRun } from "../core/permit/permit.ts";
import { type Answer, dottedName } from "../registry/define.ts";
import type { ReadInvocation } from "../registry/invocation.ts";
import { resolveTarget } from "../core/submit/resolve-targets.ts";
import { patiently, redisTrouble } from "../redis/redis.ts";
import { linkTo } from "../core/deliver/permalink.ts";
import { uploadFile } from "../core/deliver/upload.ts";
import { say } from "../slack/error-reply.ts";
import { textAt } from "../slack/json.ts";
import { type Interaction, isDirect } from "../slack/receive/interaction.ts";
import { type WebAnswer, whyOf } from "../slack/web-answer.ts";
import { type Place, postMessage } from "../slack/web.ts";
import type { Act, BeforeAck, Contributions, GatewayContext } from "./gateway-context.ts";
import { offersAtRefusal, rehearsalOf, severalHandlerOf } from "./service-keys.ts";
import { isOfThread, showOrSay } from "../slack/refused-message.ts";

/**
 * Answers a read command for an authorized person, privately or in the channel as the command's
 * `audience` says. `isShared`: the requester asked to show an earlier answer to the channel.
 */
export async function answer(
  invocation: ReadInvocation,
  asking: Asking,
  act: Act,
  { isShared = false }: { isShared?: boolean } = {},
): Promise<void> {
  const { command, input } = invocation;
  const { interaction, reply } = act;
  const { message: own, file, isSharable } = await answerOf(invocation, asking, act, { isShared });
  if (file && !(await sendFile(file, act))) await reply.privately(unsent(file));
  if (isShared)
    return postToChannel(withParts(own, small(md`Shared by ${asking.person.name}`)), act);
  if (command.audience === "channel" || isDirect(interaction)) return postToChannel(own, act);
  const mayShare =
    isSharable === true || (command.class === "read" && command.audience !== "asker");
  if (interaction.channelId === "" || !mayShare) return reply.privately(own);
  const value = JSON.stringify({ command: dottedName(command), input });
  const sharing = { label: "Share in channel", action: "share", value };
  await reply.privately(withParts(own, waysRow([sharing])));
}

/**
 * Runs a read command and returns its answer without sending it. `args` is what the command's
 * schema parsed.
 */
export async function answerOf(
  { command, args }: Pick<ReadInvocation, "command" | "args">,
  asking: Asking | ServiceAsking,
  act: AskedIn,
  how: { approved?: string; isShared?: boolean } = {},
): Promise<Answer> {
  // The schema of this command parsed `args`, and it declares which part of the context it uses.
  const answered = await command.answer(args as never, readContext(asking, act, how) as never);
  return "message" in answered ? answered : { message: answered };
}

/**
 * Runs a read command for a program. The result has only the fields of the command's data shape;
 * undefined when the command has no such shape.
 */
export async function jsonAnswerOf(
  { command: { data }, args }: Pick<ReadInvocation, "command" | "args">,
  asking: Asking | ServiceAsking,
  act: AskedIn,
): Promise<object | undefined> {
  // As in `answerOf`, the arguments are of this command.
  return (
    data && data.shape.parse(await data.readData(args as never, readContext(asking, act) as never))
  );
}

/** The channel and the act of a read, and the view of its reader. A program's read has no act. */
type AskedIn = BeforeAck<Pick<Interaction, "channelId"> & Partial<Pick<Interaction, "id" | "at">>>;

function readContext(
  asking: Asking | ServiceAsking,
  { interaction: { channelId, id, at }, gateway }: AskedIn,
  { approved, isShared = false }: { approved?: string; isShared?: boolean } = {},
): ReadContext {
  const { inventory } = gateway;
  const rehearsal = rehearsalOf.ifAny(gateway);
  const { person } = asking;
  return {
    ...gateway,
    asking,
    person,
    ...(id === undefined || at === undefined ? {} : { interaction: { id, at } }),
    channelId,
    isShared,
    takesSeveral: severalHandlerOf.ifAny(gateway) !== undefined,
    ...(approved === undefined ? {} : { approved }),
    journal: gateway.store,
    rehearse: rehearsal && ((permit) => rehearsal.rehearse({ permit }, gateway)),
    resolve: (kind, words) => resolveTarget(asking, kind, words, inventory),
    mayRun: (command, targets = []) => mayRun({ person, command, targets }, gateway),
    findChannel: (word) => findChannel(gateway.web, word),
    linkTo: (posted) => linkTo(posted, gateway),
    offersAtRefusal: (lacked) => offersAtRefusal(lacked, gateway),
    async post(channel, posting) {
      const posted = await postIn({ channelId: channel }, posting, gateway);
      return posted.ok || posted.kind === "lost" ? undefined : whyOf(posted);
    },
  };
}

type PostContext = Pick<GatewayContext, "web" | "announce" | "log"> & {
  contributed: Pick<Contributions, "answeredForAll">;
};

/** Posts in a channel. A message with a button that is answered for all is kept as a notice: the answer is edited in. */
export async function postIn(
  place: Place,
  posting: Message,
  { web, announce, contributed, log }: PostContext,
): Promise<WebAnswer> {
  const postAt = (at: Place) => showOrSay(posting, (shown) => postMessage(web, at, shown));
  let posted = await postAt(place);
  const isShut = !posted.ok && posted.kind === "refused" && isOfThread(posted.error);
  if (isShut && place.threadTs) posted = await postAt({ channelId: place.channelId });
  if (!posted.ok || buttonsOf(posting, contributed.answeredForAll).length === 0) return posted;
  const [channelId, ts] = [textAt(posted.data, "channel"), textAt(posted.data, "ts")];
  const id = `posted-${channelId}-${ts}`;
  // Only this is repeated while Redis fails, because the whole act would post once more. If Redis
  // stays away, the message keeps its button, and a press of it still counts.
  const keep = () => announce({ id, channelId, message: posting }, { ts });
  await patiently(keep).catch((error: unknown) => {
    if (redisTrouble(error) === undefined) throw error;
    log.error("slack.notice-not-kept", { channel: channelId, ts, error });
  });
  return posted;
}

export const unsent = ({ name: file }: NonNullable<Answer["file"]>) =>
  say(md`The file ${file} couldn't be sent to you: Slack isn't accepting files right now.`);

/**
 * Sends a file to the requester's direct messages, because a file can't be ephemeral. False when
 * Slack didn't take it.
 */
export async function sendFile(
  file: NonNullable<Answer["file"]>,
  { interaction: { userId }, gateway: { web, apiUrl } }: BeforeAck,
): Promise<boolean> {
  return (await uploadFile({ web, apiUrl, userId, ...file })) === undefined;
}

/**
 * Shows an answer to the whole channel. If Slack refuses it, the requester alone gets the answer
 * and the reason.
 */
async function postToChannel(posting: Message, act: Act): Promise<void> {
  const { interaction, reply, gateway } = act;
  const posted = await postIn(interaction, posting, gateway);
  if (posted.ok || posted.kind === "lost") return;
  await reply.privately(posting);
  await reply.privately(say(whyPrivately(posted)));
}

type Unposted = Exclude<WebAnswer, { ok: true }>;

/** The message blames the channel only if Slack's error is about the channel. */
function whyPrivately(unposted: Unposted): Markdown {
  if (unposted.kind !== "refused")
    return md`Slack isn't accepting channel messages right now, so only you see this.`;
  const way = howToOpen(unposted.error);
  return way
    ? md`Gatehouse can't post in this channel, so only you see this. ${way}`
    : md`Slack refused this message (${name(unposted.error)}), so only you see this.`;
}
