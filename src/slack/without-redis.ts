import { ComputeError } from "../compute/errors.ts";
import { UserError } from "../errors.ts";
import { context, message, type Message } from "../messages/message.ts";
import { Markdown, md, name } from "../messages/text.ts";
import type { Watch } from "../outages/watch.ts";
import type { ReadCommand } from "../registry/define.ts";
import { parseCommand, parseInput } from "../registry/parse.ts";
import { apologise, say } from "./apology.ts";
import type { Ask } from "./ask.ts";
import { refusalOf } from "./refuse.ts";
import type { Reply } from "./reply.ts";
import { readContext } from "./run.ts";
import { showAnswer } from "./show-answer.ts";
import type { Talk } from "./talk.ts";

/**
 * While Redis is away nothing can be written down, so nothing may be changed. What only reads still works: names come from
 * memory, everything else from the service. Redelivered it is answered twice, which harms nobody.
 */
export async function readWithoutRedis(ask: Ask, reply: Reply, talk: Talk): Promise<void> {
  const read = readOf(ask, talk);
  if (!read) return reply.privately(say(md`Redis is down: nothing was done.`));
  const { command, input } = read;
  try {
    const args: unknown = parseInput(command, input);
    const person = await talk.person(ask.userId, ask.teamId);
    const refused = refusalOf({ command, targets: [], person, channelId: ask.channelId }, talk);
    if (refused) return await reply.privately(say(md`${refused.text}`));
    const answered = await command.answer(args as never, readContext(person, ask, talk));
    const toChannel = command.audience === "channel";
    const noted = { ...reply, privately: (answer: Message) => reply.privately(withNote(answer)) };
    await showAnswer(answered, { command, input, toChannel }, ask, noted, talk);
  } catch (error) {
    if (error instanceof UserError || error instanceof ComputeError)
      return reply.privately(withNote(apologise(error, talk.log)));
    talk.log.info("read.needs-redis", { command: command.name, error });
    await reply.privately(
      say(
        md`Redis is down, and ${name(`/${command.name}`)} needs it.`,
        md`Nothing was done. Lists of VMs and projects still work.`,
      ),
    );
  }
}

/** Whether an ask may be answered though it could not be written down: words that only read. */
export function mayGoWithoutRedis(ask: Ask, talk: Pick<Talk, "commands">): boolean {
  return readOf(ask, talk) !== undefined;
}

/**
 * What was refused is listed afterwards where it was asked. Only words that would have been shown there anyway: those of a
 * change. Of others nobody but the asker would have seen anything.
 */
export function rememberRefused(
  ask: Ask,
  talk: Pick<Talk, "commands">,
  watch: Pick<Watch, "refused">,
): void {
  const { id, channelId, userId, teamId } = ask;
  if (!/^[CDG]/.test(channelId)) return;
  const asked = { id, channelId, userId, teamId };
  if (ask.kind === "button" || ask.kind === "submission") return watch.refused(asked);
  if (ask.kind !== "command" && ask.kind !== "mention") return;
  const parsed = parsedOf(ask.text, talk);
  if (parsed?.command.kind === "change") watch.refused({ ...asked, words: `/${ask.text.trim()}` });
}

function readOf(
  ask: Ask,
  talk: Pick<Talk, "commands">,
): { command: ReadCommand; input: Record<string, unknown> } | undefined {
  if (ask.kind !== "command" && ask.kind !== "mention") return undefined;
  const parsed = parsedOf(ask.text, talk);
  if (parsed?.command.kind !== "read" || parsed.command.class !== "read") return undefined;
  return { command: parsed.command, input: parsed.input };
}

function parsedOf(text: string, { commands }: Pick<Talk, "commands">) {
  const parsed = parseCommand(text, commands);
  return "refusal" in parsed ? undefined : parsed;
}

function withNote({ text, blocks }: Message): Message {
  const note = md`⚠️ Redis is away: this was read without it. What is under way isn't shown, and nothing can be changed until it is back.`;
  return message(new Markdown(text), blocks, context(note));
}
