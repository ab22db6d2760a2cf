import type { Log } from "../log.ts";
import type { Message } from "../messages/message.ts";
import { md, name } from "../messages/text.ts";
import type { Answer } from "../registry/define.ts";
import { say } from "./apology.ts";
import type { Ask } from "./ask.ts";
import { postChart, withSparkline } from "./post-chart.ts";
import type { Reply } from "./reply.ts";
import { uploadFile } from "./upload.ts";
import type { Web } from "./web.ts";

interface Slack {
  web: Web;
  apiUrl: string;
  log: Log;
}

/** A command answers with a message, or with more: one shape for both. */
export function answerOf(answered: Message | Answer): Answer {
  return "message" in answered ? answered : { message: answered };
}

/**
 * Shows an answer with its chart to everybody where it was asked; where that can't be, the asker alone sees the message
 * with the chart as text, and how to change it.
 */
export async function showChart(
  { message, chart }: Answer & { chart: NonNullable<Answer["chart"]> },
  ask: Ask,
  reply: Reply,
  slack: Slack,
): Promise<void> {
  if (ask.channelId === "") return reply.privately(withSparkline(message, chart.chart));
  const { channelId, threadTs } = ask;
  const posted = await postChart({ ...slack, channelId, threadTs, message, ...chart });
  if (posted.is !== "closed") return;
  await reply.privately(posted.instead);
  const canBeInvited = posted.why === "not_in_channel" || posted.why === "channel_not_found";
  await reply.privately(
    canBeInvited
      ? say(
          md`I can't post in this channel, so only you see this, and without its picture. \`/invite @gatehouse\` changes that.`,
        )
      : say(
          md`Slack takes no pictures here right now (${name(posted.why)}), so only you see this.`,
        ),
  );
}

/** Puts a file into the asker's direct messages, and says so when that didn't work. */
export async function giveFile(
  file: NonNullable<Answer["file"]>,
  ask: Ask,
  reply: Reply,
  slack: Slack,
): Promise<void> {
  const posted = await uploadFile({ ...slack, ...file, to: { userId: ask.userId } });
  if (posted.is !== "failed") return;
  slack.log.warn("file.not-given", { ...posted });
  await reply.privately(
    say(
      md`The file could not be sent: Slack answers ${name(posted.why)}.`,
      md`Try again in a minute; if it stays so, whoever runs Gatehouse should look at its scopes (${name("files:write")}, ${name("im:write")}).`,
    ),
  );
}
