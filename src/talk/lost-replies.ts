import type { Announce } from "../core/deliver/notices.ts";
import { stateWords } from "../core/request/stage.ts";
import type { StoredRequest } from "../core/request/stored-request.ts";
import { type Message } from "../messages/blocks.ts";
import { type ButtonSpec } from "../messages/buttons.ts";
import { card } from "../messages/card.ts";
import { limits } from "../messages/limits.ts";
import { type Markdown, md, name, plain } from "../messages/markdown.ts";
import type { Command } from "../registry/define.ts";
import { asksForChange, targetWords } from "../registry/invocation.ts";
import { parseCommand } from "../registry/parse.ts";
import type { Interaction } from "../slack/receive/interaction.ts";
import { isGlob } from "../text/glob.ts";
import { originOfInteraction } from "./act-origin.ts";
import type { GatewayContext } from "./gateway-context.ts";

/**
 * Creates the function that tells a person later, by direct message, that Slack lost an answer. The
 * message never holds the answer itself, which may be short-lived (a console's address). It says
 * what became of what they asked for, and offers to do it now where nothing was done.
 */
export function createLostReplies(
  announce: Announce,
  contextNow: () => Pick<GatewayContext, "store" | "commands">,
): (interaction: Interaction) => Promise<void> {
  return async (interaction) => {
    // A person who misses the Home tab simply opens it again.
    if (interaction.kind === "home") return;
    const { store, commands } = contextNow();
    const made = await store.madeBy(originOfInteraction(interaction));
    const { id, userId: channelId } = interaction;
    const shown = lostReply({
      answered: answeredTo(interaction),
      way: interaction.kind === "mention" ? "Mention Gatehouse again with these words" : undefined,
      ...(made
        ? { made: { id: made.record.id, state: made.state } }
        : withoutRequest(interaction, commands)),
    });
    await announce({ id: `unheard:${id}`, channelId, message: shown });
  };
}

/** The command or the words of a mention, or else the person, that Gatehouse answered. */
function answeredTo(interaction: Interaction): Markdown {
  if (interaction.kind === "command") return name(`/${interaction.text}`);
  return interaction.kind === "mention" ? md`“${plain(interaction.text)}”` : md`you`;
}

interface Lost {
  answered: Markdown;
  /** The request that it made. */
  made?: { id: string; state: StoredRequest["state"] };
  /** True where it would have made a request if it had run. */
  hasNotRun?: boolean;
  /** Does it now. */
  again?: readonly ButtonSpec[];
  /** What the person can do where no button does it. */
  way?: string | undefined;
}

/** Renders the message about a lost answer. */
export function lostReply({
  answered,
  made,
  hasNotRun = false,
  again = [],
  way = "Please try again",
}: Lost): Message {
  const wasAway = md`Slack was unavailable when Gatehouse answered ${answered}.`;
  if (made) {
    const title = md`${answered} was requested: ${stateWords(made.state)} (${name(made.id)}).`;
    return card({ title, lines: [wasAway] });
  }
  if (hasNotRun) {
    return card({ title: md`${answered} has not run: Slack was unavailable.`, ways: again });
  }
  if (again.length > 0) return card({ title: wasAway, ways: again });
  return card({
    title: wasAway,
    push: md`Slack lost Gatehouse's answer to ${answered}. ${way}.`,
    lines: [md`If no message about it is in the channel, nothing was done. ${way}.`],
  });
}

/**
 * Tells whether a command that made no request has run, and makes the button that runs it. A change
 * of one target always makes a request, so it hasn't run; a read can be asked again. Others, such as
 * a freeze, leave no request by which this could tell. Break-glass has no button, because it needs a
 * slash command.
 */
function withoutRequest(
  interaction: Interaction,
  commands: readonly Command[],
): Pick<Lost, "hasNotRun" | "again"> {
  if (interaction.kind !== "command" && interaction.kind !== "mention") return {};
  const { id, text } = interaction;
  const parsed = parseCommand(text, commands);
  if ("refusal" in parsed) return {};
  const { command } = parsed;
  const isRead = command.kind === "read" && command.class === "read";
  const targets = targetWords(parsed);
  const isOne = asksForChange(parsed) && targets.length <= 1 && !targets.some(isGlob);
  if (!isRead && !isOne) return {};
  const label = isRead ? "Ask again" : "Run it now";
  const value = JSON.stringify({ interaction: id, text });
  const hasButton = !("breakGlass" in parsed) && value.length <= limits.buttonValue;
  const again = hasButton ? [{ label, about: `/${text}`, action: "lost:run", value }] : [];
  return isRead ? { again } : { hasNotRun: true, again };
}
