import { buttons, context, message, type Message, news, section } from "../../messages/message.ts";
import { channelLink, lines, Markdown, md, mention, when } from "../../messages/text.ts";
import type { ChangeCommand } from "../../registry/define.ts";
import type { StoredRequest } from "../journal/record.ts";
import { askingLine, deedOf, missingWords } from "./asking.ts";
import { cardViewOf, isChannel, isDecidedElsewhere, unknownWords } from "./card-view.ts";
import { cardButtons, renderCard, titleOf } from "./render-card.ts";

/** Links are permalinks of Slack, or undefined where it doesn't tell them. */
type Link = string | undefined;

/** `<…|its card>`, or only the words. */
function linked(link: Link, words: string): Markdown {
  return link === undefined ? md`${words}` : md`<${new Markdown(link)}|${words}>`;
}

/** Where it was requested, while its card is in the channel of its team: the state, and what its requester can do. */
export function renderAsked(request: StoredRequest, command: ChangeCommand, link: Link): Message {
  const { record } = request;
  const where = md`${channelLink(record.teamChannel ?? "")}: ${linked(link, "open its card")}. The result is told here too.`;
  if (cardViewOf(request) !== "asking") {
    const card = renderCard(request, command);
    return { ...card, blocks: [...card.blocks, context(md`Its card is in ${where}`)] };
  }
  const deed = deedOf(record, command);
  return message(
    news(md`${deed} waits for approval in the channel of its team`),
    section(
      lines(
        titleOf(request, command),
        askingLine(request),
        md`Those who decide see it in ${where}`,
      ),
    ),
    buttons(cardButtons(request, command)),
  );
}

/** An unknown outcome (one of `unknownNotices`), told where its card is not: to the requester, or to the team. */
export function renderUnknownElsewhere(
  notice: string,
  request: StoredRequest,
  command: ChangeCommand,
  link: Link,
): Message {
  const { record, progress } = request;
  const deed = deedOf(record, command);
  const again = unknownWords(notice);
  const why = progress.why ? md` (${progress.why})` : "";
  const whom = isDecidedElsewhere(request) ? md`${mention(record.requester.id)} ` : "";
  const who = isDecidedElsewhere(request) ? "" : md` ${record.requester.name} ${askedIn(request)}.`;
  const text = md`❓ ${whom}${again}: did “${deed}” happen?${why}${who} ${linked(link, "Its message")} has the facts and the buttons. Nothing is resent automatically.`;
  return message(
    news(md`❓ ${again}: did “${deed}” happen? Check it, then record what happened.`),
    section(text),
  );
}

function askedIn({ record }: StoredRequest): Markdown {
  return isChannel(record.channelId)
    ? md`requested it in ${channelLink(record.channelId)}`
    : md`requested it in a direct message`;
}

/** On the card in the channel of its team: where it came from. */
export function cameFrom({ record }: StoredRequest, link: Link): Markdown {
  if (!isChannel(record.channelId)) return md` in a direct message`;
  const there = link === undefined ? "" : md` (${linked(link, "open")})`;
  return md` in ${channelLink(record.channelId)}${there}`;
}

/** On the card where it was requested: why those who decide don't see it in the channel of their team. */
export function teamClosedLine({ record }: StoredRequest): Markdown {
  return md`Gatehouse can't post in ${channelLink(record.teamChannel ?? "")}, the channel of its team, so this card is here. \`/invite @gatehouse\` there changes that, unless another company shares it.`;
}

/** A direct message to the requester, who may have stopped looking. */
export function renderExpired(request: StoredRequest, command: ChangeCommand, link: Link): Message {
  const { record } = request;
  const deed = deedOf(record, command);
  const missing = missingWords(request);
  const still = missing === undefined ? "" : md` It still needed ${missing}.`;
  const value = JSON.stringify({ request: record.id });
  return message(
    news(md`Expired without approval: ${deed}. Nothing was sent.`),
    section(
      md`⌛ *${deed}* expired at ${when(record.approval?.expiresAt ?? 0)} without the approvals it needs; nothing was sent.${still} ${linked(link, "Its card")} has the facts.`,
    ),
    buttons([{ label: "Request again", action: "request:retry", value }]),
  );
}
