import { ComputeError } from "../fleet/compute/compute.ts";
import { UserError } from "../errors.ts";
import type { Message } from "../messages/blocks.ts";
import { withParts } from "../messages/card.ts";
import { md, name } from "../messages/markdown.ts";
import { small } from "../messages/parts.ts";
import type { DependencyProbe } from "../monitor/dependency-probe.ts";
import { mayAsk } from "../core/permit/permit.ts";
import { type ReadInvocation, asksForChange } from "../registry/invocation.ts";
import { parseCommand } from "../registry/parse.ts";
import { errorReply, say } from "../slack/error-reply.ts";
import { type Interaction, type Reply, isDirect } from "../slack/receive/interaction.ts";
import { answer } from "./answer.ts";
import { replaceCommandWords } from "./command-words.ts";
import { type Act, type GatewayContext, personOf } from "./gateway-context.ts";

/**
 * Answers a read command while Redis is unavailable. Nothing can be stored then, so nothing may
 * change; names come from memory, everything else from the compute service. A redelivery is
 * answered twice, which is harmless.
 */
async function answerWithoutRedis(invocation: ReadInvocation, act: Act): Promise<void> {
  const { interaction, reply, gateway } = act;
  const { command, input } = invocation;
  const { channelId } = interaction;
  const note = md`⚠️ Redis is unavailable: this answer was read without Redis. Requests in progress aren't shown, and changes don't work until it is back.`;
  const privately = (message: Message) => reply.privately(withParts(message, small(note)));
  try {
    const person = await personOf(act);
    const { asking, refused } = mayAsk({ command, input, person, channelId }, gateway);
    if (refused) return await reply.privately(say(md`${refused.text}`));
    await answer(invocation, asking, { ...act, reply: { ...reply, privately } });
  } catch (error) {
    if (error instanceof UserError || error instanceof ComputeError)
      return privately(errorReply(error, gateway.log));
    gateway.log.info("read.needs-redis", { command: command.name, error });
    const needed = md`Redis doesn't answer, and ${name(`/${command.name}`)} needs it.`;
    await reply.privately(say(needed, md`Nothing was done. VM and project lists still work.`));
  }
}

/**
 * Handles an interaction that Redis couldn't store. A read is answered by the returned function; a
 * change is remembered for the recap of the outage in its channel, and undefined is returned.
 */
export function withoutRedis(
  interaction: Interaction,
  gateway: GatewayContext,
  { mayRun }: { mayRun: boolean },
  watch: Pick<DependencyProbe, "refused">,
): ((reply: Reply) => Promise<void>) | undefined {
  const { id, channelId, userId, teamId, kind } = interaction;
  const remember = (words: { words?: string }): undefined => {
    if (/^[CDG]/.test(channelId))
      watch.refused({ id, channelId, userId, teamId, mayRun, ...words });
  };
  if (kind === "button" || kind === "submission") return remember({});
  if (kind !== "command" && kind !== "mention") return undefined;
  const { text } = interaction;
  const parsed = parseCommand(text, gateway.commands);
  if ("refusal" in parsed) return undefined;
  const sign = kind === "command" ? "/" : isDirect(interaction) ? "" : "@gatehouse ";
  if (asksForChange(parsed)) return remember({ words: `${sign}${text.trim()}` });
  if (parsed.command.class !== "read") return undefined;
  return (reply) => {
    const reworded = replaceCommandWords(interaction, reply, gateway);
    return answerWithoutRedis(parsed, { interaction, reply: reworded, gateway });
  };
}
