import { buttons, type ButtonSpec, type Message, message } from "../messages/message.ts";
import { Markdown, md } from "../messages/text.ts";
import type { Answer, ReadCommand } from "../registry/define.ts";
import { say } from "./apology.ts";
import type { Ask } from "./ask.ts";
import { postChart } from "./post-chart.ts";
import { publicly } from "./publicly.ts";
import type { Reply } from "./reply.ts";
import { dotted, type Talk } from "./talk.ts";
import { uploadFile } from "./upload.ts";

/** Shows what a read command answered: to the asker, or to the channel where the command says so or it is shared. */
export async function showAnswer(
  answered: Message | Answer,
  shown: { command: ReadCommand; input: Record<string, unknown>; toChannel: boolean },
  ask: Ask,
  reply: Reply,
  talk: Talk,
): Promise<void> {
  const answer = "message" in answered ? answered : { message: answered };
  if (answer.file) await sendFile(answer.file, ask, reply, talk);
  if (shown.toChannel) {
    if (answer.chart) return showChart(answer.message, answer.chart, ask, reply, talk);
    return publicly(answer.message, ask, reply, talk);
  }
  const share: ButtonSpec = {
    label: "Share in channel",
    action: "share",
    value: JSON.stringify({ command: dotted(shown.command), input: shown.input }),
  };
  const isSharable =
    ask.channelId !== "" &&
    shown.command.class === "read" &&
    shown.command.name !== "gatehouse help";
  const { text, blocks } = answer.message;
  await reply.privately(
    isSharable ? message(new Markdown(text), blocks, buttons([share])) : answer.message,
  );
}

async function showChart(
  above: Message,
  { chart, altText }: NonNullable<Answer["chart"]>,
  ask: Ask,
  reply: Reply,
  talk: Talk,
): Promise<void> {
  const posted = await postChart({
    web: talk.web,
    apiUrl: talk.apiUrl,
    log: talk.log,
    channelId: ask.channelId,
    threadTs: ask.threadTs,
    message: above,
    chart,
    altText,
  });
  if (posted.is !== "closed") return;
  await reply.privately(posted.instead);
  await reply.privately(
    say(
      md`I can't post pictures here (${posted.why}), so only you see this, as text. \`/invite @gatehouse\` changes that.`,
    ),
  );
}

/** A file can't be ephemeral, so it goes into the asker's direct messages. */
async function sendFile(
  file: NonNullable<Answer["file"]>,
  ask: Ask,
  reply: Reply,
  talk: Talk,
): Promise<void> {
  const sent = await uploadFile({
    web: talk.web,
    apiUrl: talk.apiUrl,
    to: { userId: ask.userId },
    name: file.name,
    title: file.title,
    content: file.content,
  });
  if (sent.is !== "posted") {
    await reply.privately(
      say(md`The file ${file.name} could not be sent to you: Slack does not take it right now.`),
    );
  }
}
