import type { ReadContext } from "../../commands/context.ts";
import { ComputeError } from "../../compute/errors.ts";
import { UserError } from "../../errors.ts";
import {
  buttons,
  type ButtonSpec,
  context,
  type Message,
  message,
} from "../../messages/message.ts";
import { howToOpen } from "../../messages/closed-channel.ts";
import { Markdown, md, name } from "../../messages/text.ts";
import { mayRun } from "../../policy/refusal.ts";
import { type Answer, dottedName } from "../../registry/define.ts";
import type { Person, ReadInvocation } from "../../registry/invocation.ts";
import { resolveTarget } from "../../requests/submit/resolve.ts";
import { linkTo } from "../deliver/permalink.ts";
import { showOrSay } from "../deliver/post-once.ts";
import { uploadFile } from "../deliver/upload.ts";
import { errorReply, say } from "../error-reply.ts";
import { postMessage, whyOf } from "../web.ts";
import { isDirect } from "../receive/interaction.ts";
import { refusalOf } from "./authorize.ts";
import { type Act, type BeforeAck, type GatewayContext, personOf } from "./gateway-context.ts";

/** Answers a read command for an authorized person. */
export async function answer(
  invocation: ReadInvocation,
  person: Person,
  act: Act,
  isShared = false,
): Promise<void> {
  const { command, input } = invocation;
  const { interaction, reply } = act;
  const { message: own, file, isSharable } = await answerOf(invocation, person, act, { isShared });
  if (file && !(await sendFile(file, act)))
    await reply.privately(
      say(
        md`The file ${file.name} couldn't be sent to you: Slack isn't accepting files right now.`,
      ),
    );
  if (isShared) return postToChannel(withContext(own, md`Shared by ${person.name}`), act);
  if (command.audience === "channel" || isDirect(interaction)) return postToChannel(own, act);
  const mayShare =
    isSharable === true || (command.class === "read" && command.audience !== "asker");
  if (interaction.channelId === "" || !mayShare) return reply.privately(own);
  const sharing: ButtonSpec = {
    label: "Share in channel",
    action: "share",
    value: JSON.stringify({ command: dottedName(command), input }),
  };
  await reply.privately(message(new Markdown(own.text), own.blocks, buttons([sharing])));
}

/** Runs a read command. `args` is what its schema parsed. */
export async function answerOf(
  { command, args }: Pick<ReadInvocation, "command" | "args">,
  person: Person,
  { interaction: { channelId }, gateway }: BeforeAck,
  { approved, isShared = false }: { approved?: string; isShared?: boolean } = {},
): Promise<Answer> {
  const { policy, ourTeamId, inventory } = gateway;
  const readContext: ReadContext = {
    ...gateway,
    person,
    channelId,
    isShared,
    ...(approved === undefined ? {} : { approved }),
    journal: gateway.store,
    resolve: (kind, words) => resolveTarget(kind, words, inventory),
    mayRun: (one, targets = []) => mayRun({ policy, person, ourTeamId, command: one, targets }),
    linkTo: (posted) => linkTo(posted, gateway),
    post: (channel, digest) => post(channel, digest, gateway),
  };
  const answered = await command.answer(args as never, readContext as never);
  return "message" in answered ? answered : { message: answered };
}

/** Posts a digest. Returns why it couldn't. */
async function post(
  channelId: string,
  digest: Message,
  { web }: Pick<GatewayContext, "web">,
): Promise<string | undefined> {
  const posted = await showOrSay(digest, (one) => postMessage(web, { channelId }, one));
  return posted.ok || posted.kind === "lost" ? undefined : whyOf(posted);
}

/**
 * While Redis is unavailable nothing can be stored, so nothing may change. Reads still work: names come from memory,
 * everything else from the compute service. A redelivery is answered twice, which is harmless.
 */
export async function answerWithoutRedis(invocation: ReadInvocation, act: Act): Promise<void> {
  const { interaction, reply, gateway } = act;
  const { command, input } = invocation;
  const { channelId } = interaction;
  const note = md`⚠️ Redis is unavailable: this was read without it. Requests in progress aren't shown, and changes don't work until it is back.`;
  const noted = {
    ...reply,
    privately: (said: Message) => reply.privately(withContext(said, note)),
  };
  try {
    const person = await personOf(act);
    const refused = refusalOf({ command, input, targets: [], person, channelId }, gateway);
    if (refused) return await reply.privately(say(md`${refused.text}`));
    await answer(invocation, person, { ...act, reply: noted });
  } catch (error) {
    if (error instanceof UserError || error instanceof ComputeError)
      return noted.privately(errorReply(error, gateway.log));
    gateway.log.info("read.needs-redis", { command: command.name, error });
    await reply.privately(
      say(
        md`Redis doesn't answer, and ${name(`/${command.name}`)} needs it.`,
        md`Nothing was done. VM and project lists still work.`,
      ),
    );
  }
}

function withContext({ text, blocks }: Message, note: Markdown): Message {
  return message(new Markdown(text), blocks, context(note));
}

/** A file can't be ephemeral, so it goes to the requester's direct messages. False where Slack didn't take it. */
export async function sendFile(
  file: NonNullable<Answer["file"]>,
  { interaction: { userId }, gateway: { web, apiUrl } }: BeforeAck,
): Promise<boolean> {
  const sent = await uploadFile({ web, apiUrl, to: { userId }, ...file });
  return sent.is === "posted";
}

/** Shows an answer to the whole channel; where the bot is no member only the requester sees it, and how to change that. */
export async function postToChannel(posting: Message, act: Act): Promise<void> {
  const { interaction, reply, gateway } = act;
  const posted = await showOrSay(posting, (one) => postMessage(gateway.web, interaction, one));
  if (posted.ok || posted.kind === "lost") return;
  await reply.privately(posting);
  const why =
    posted.kind === "refused"
      ? md`Gatehouse can't post in this channel, so only you see this. ${howToOpen(posted.error)}`
      : md`Slack isn't accepting channel messages right now, so only you see this.`;
  await reply.privately(say(why));
}
