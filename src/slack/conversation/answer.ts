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
import { type Answer, dottedName } from "../../registry/define.ts";
import type { Person, ReadInvocation } from "../../registry/invocation.ts";
import { showOrSay } from "../deliver/post-once.ts";
import { uploadFile } from "../deliver/upload.ts";
import { errorReply, say } from "../error-reply.ts";
import { postMessage } from "../web.ts";
import { type Interaction, isDirect, type Reply } from "../receive/interaction.ts";
import { authorize, refusalOf } from "./authorize.ts";
import type { GatewayContext } from "./gateway-context.ts";
import { answerOf } from "./read-context.ts";

/** Answers a read command for an authorized person. */
export async function answer(
  { command, input, args }: ReadInvocation,
  person: Person,
  interaction: Interaction,
  reply: Reply,
  gateway: GatewayContext,
  isShared = false,
): Promise<void> {
  const answered = await answerOf(command, args, person, interaction, gateway, { isShared });
  const { message: own, ...rest } = "message" in answered ? answered : { message: answered };
  const said = isShared ? withContext(own, md`Shared by ${person.name}`) : own;
  const toChannel = isShared || command.audience === "channel" || isDirect(interaction);
  const shown = { command, input, toChannel };
  await showAnswer({ ...rest, message: said }, shown, interaction, reply, gateway);
}

/** Runs the command again and shows its answer to the whole channel. */
export async function share(
  invocation: ReadInvocation,
  interaction: Interaction,
  reply: Reply,
  gateway: GatewayContext,
): Promise<void> {
  const { userId, teamId, channelId } = interaction;
  const person = await gateway.person(userId, teamId);
  const { command, input } = invocation;
  await authorize({ command, input, targets: [], person, channelId }, gateway);
  await answer(invocation, person, interaction, reply, gateway, true);
}

/**
 * While Redis is unavailable nothing can be stored, so nothing may change. Reads still work: names come from memory,
 * everything else from the compute service. A redelivery is answered twice, which is harmless.
 */
export async function answerWithoutRedis(
  invocation: ReadInvocation,
  interaction: Interaction,
  reply: Reply,
  gateway: GatewayContext,
): Promise<void> {
  const { command, input } = invocation;
  const note = md`⚠️ Redis is unavailable: this was read without it. Requests in progress aren't shown, and changes don't work until it is back.`;
  const noted = {
    ...reply,
    privately: (said: Message) => reply.privately(withContext(said, note)),
  };
  try {
    const person = await gateway.person(interaction.userId, interaction.teamId);
    const asked = { command, input, targets: [], person, channelId: interaction.channelId };
    const refused = refusalOf(asked, gateway);
    if (refused) return await reply.privately(say(md`${refused.text}`));
    await answer(invocation, person, interaction, noted, gateway);
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

async function showAnswer(
  { message: said, file, isSharable: mayShare = false }: Answer,
  { command, input, toChannel }: Pick<ReadInvocation, "command" | "input"> & { toChannel: boolean },
  interaction: Interaction,
  reply: Reply,
  gateway: GatewayContext,
): Promise<void> {
  if (file) await sendFile(file, interaction, reply, gateway);
  if (toChannel) return postToChannel(said, interaction, reply, gateway);
  const isSharable =
    interaction.channelId !== "" &&
    (mayShare || (command.class === "read" && command.audience !== "asker"));
  const sharing: ButtonSpec = {
    label: "Share in channel",
    action: "share",
    value: JSON.stringify({ command: dottedName(command), input }),
  };
  const { text, blocks } = said;
  await reply.privately(
    isSharable ? message(new Markdown(text), blocks, buttons([sharing])) : said,
  );
}

/** A file can't be ephemeral, so it goes to the requester's direct messages. */
async function sendFile(
  file: NonNullable<Answer["file"]>,
  interaction: Interaction,
  reply: Reply,
  gateway: GatewayContext,
): Promise<void> {
  const sent = await uploadFile({
    web: gateway.web,
    apiUrl: gateway.apiUrl,
    to: { userId: interaction.userId },
    name: file.name,
    title: file.title,
    content: file.content,
  });
  if (sent.is !== "posted") {
    await reply.privately(
      say(
        md`The file ${file.name} couldn't be sent to you: Slack isn't accepting files right now.`,
      ),
    );
  }
}

/** Shows an answer to the whole channel; where the bot is no member only the requester sees it, and how to change that. */
export async function postToChannel(
  posting: Message,
  interaction: Interaction,
  reply: Reply,
  gateway: Pick<GatewayContext, "web">,
): Promise<void> {
  const posted = await showOrSay(posting, (one) => postMessage(gateway.web, interaction, one));
  if (posted.ok || posted.kind === "lost") return;
  await reply.privately(posting);
  const why =
    posted.kind === "refused"
      ? md`Gatehouse can't post in this channel, so only you see this. ${howToOpen(posted.error)}`
      : md`Slack isn't accepting channel messages right now, so only you see this.`;
  await reply.privately(say(why));
}
