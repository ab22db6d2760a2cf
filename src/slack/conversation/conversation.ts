import { redisTrouble } from "../../redis/trouble.ts";
import { md } from "../../messages/text.ts";
import { errorReply, say } from "../error-reply.ts";
import {
  type Interaction,
  type Handlers,
  isDirect,
  type Reply,
  type Submission,
} from "../receive/interaction.ts";
import { runInEmergency } from "./break-glass.ts";
import { checkDialog, submitDialog } from "./dialog.ts";
import { dialogCallback } from "./dialog-view.ts";
import { answerWithoutRedis } from "./answer.ts";
import { pickCallback, targetChosen } from "./choose-target.ts";
import { inMentions } from "./mention-words.ts";
import { press } from "./press.ts";
import type { Watch } from "../../outages/outages.ts";
import { asksForChange } from "../../registry/invocation.ts";
import { parseCommand } from "../../registry/parse.ts";
import { pressedAtHome, showHome } from "./home.ts";
import { alreadyRequested } from "./submit-change.ts";
import { checkRollout, submitRollout } from "./rollout-submit.ts";
import { rolloutCallback } from "./rollout-view.ts";
import { runWords } from "./run-words.ts";
import { seenBy } from "./seen-by.ts";
import { shortcut } from "./shortcuts.ts";
import { suggest } from "./suggest.ts";
import type { GatewayContext } from "./gateway-context.ts";
import { denialCallback, giveReason, outcomeCallback, recordOutcome } from "./vote.ts";
import { parseJson, textAt } from "../web.ts";

export function createConversation(
  contextNow: () => GatewayContext,
  watch: Pick<Watch, "refused">,
): Omit<Handlers, "peopleChanged"> {
  return {
    async handle(interaction: Interaction, anyReply: Reply): Promise<void> {
      const gateway = seenBy(interaction, contextNow());
      const reply = wordsFor(interaction, anyReply, gateway);
      switch (interaction.kind) {
        case "command":
        case "mention":
          return runWords(interaction.text, interaction, reply, gateway);
        case "button":
          if (interaction.view?.type === "home")
            return pressedAtHome(interaction, reply, gateway, (answer) =>
              press(interaction, answer, gateway),
            );
          return press(interaction, reply, gateway);
        case "home":
          return void (await showHome(interaction, gateway));
        case "shortcut":
          return shortcut(interaction, reply, gateway);
        case "submission":
          return submitted(interaction, replyWhereOpened(interaction, reply, gateway), gateway);
      }
    },

    async repeated(interaction: Interaction, reply: Reply): Promise<void> {
      const gateway = seenBy(interaction, contextNow());
      const first = await gateway.store.madeBy(interaction.id);
      if (first) await reply.privately(await alreadyRequested(first.record.id, gateway));
    },

    async submit(interaction: Submission): Promise<{ errors: Record<string, string> } | undefined> {
      const gateway = seenBy(interaction, contextNow());
      if (interaction.callback === outcomeCallback) return recordOutcome(interaction, gateway);
      if (interaction.callback === denialCallback) return giveReason(interaction, gateway);
      if (interaction.callback === dialogCallback) return checkDialog(interaction, gateway);
      if (interaction.callback === rolloutCallback) return checkRollout(interaction, gateway);
      return undefined;
    },

    suggest: (request) => suggest(request, seenBy(request, contextNow())),

    withoutRedis: (interaction) =>
      withoutRedis(interaction, seenBy(interaction, contextNow()), watch),

    async tooLate(reply: Reply): Promise<void> {
      await reply.privately(
        say(
          md`Gatehouse was interrupted while reading your command. Nothing was done; please send it again.`,
        ),
      );
    },
  };
}

/** What Redis could not store: reads are answered anyway; changes are listed in the recap of the outage in their channel. */
function withoutRedis(
  interaction: Interaction,
  gateway: GatewayContext,
  watch: Pick<Watch, "refused">,
): ((reply: Reply) => Promise<void>) | undefined {
  const { id, channelId, userId, teamId, kind } = interaction;
  const remember = (words: { words?: string }): undefined => {
    if (/^[CDG]/.test(channelId)) watch.refused({ id, channelId, userId, teamId, ...words });
  };
  if (kind === "button" || kind === "submission") return remember({});
  if (kind !== "command" && kind !== "mention") return undefined;
  const { text } = interaction;
  const parsed = parseCommand(text, gateway.commands);
  if ("refusal" in parsed) return undefined;
  const sign = kind === "command" ? "/" : isDirect(interaction) ? "" : "@gatehouse ";
  if (asksForChange(parsed)) return remember({ words: `${sign}${text.trim()}` });
  if (parsed.command.class !== "read") return undefined;
  return (reply) =>
    answerWithoutRedis(parsed, interaction, wordsFor(interaction, reply, gateway), gateway);
}

/** In a mention, hints are for mentions: slash commands don't work in threads. */
function wordsFor(interaction: Interaction, reply: Reply, { commands }: GatewayContext): Reply {
  const isMention = interaction.kind === "mention" && !isDirect(interaction);
  return isMention ? inMentions(reply, commands) : reply;
}

async function submitted(
  interaction: Submission,
  reply: Reply,
  gateway: GatewayContext,
): Promise<void> {
  try {
    if (interaction.callback === pickCallback) await targetChosen(interaction, reply, gateway);
    if (interaction.callback === dialogCallback) {
      const isEmergency = textAt(parseJson(interaction.privateMetadata), "breakGlass") !== "";
      await (isEmergency ? runInEmergency : submitDialog)(interaction, reply, gateway);
    }
    if (interaction.callback === rolloutCallback) await submitRollout(interaction, reply, gateway);
  } catch (error) {
    if (redisTrouble(error) !== undefined) throw error;
    await reply.privately(errorReply(error, gateway.log));
  }
}

/** A submission has no channel: answers privately where its dialog was opened, else on the Home tab. */
function replyWhereOpened(interaction: Submission, reply: Reply, gateway: GatewayContext): Reply {
  return {
    ...reply,
    async privately(message) {
      const chosen = String(interaction.values["channel"] ?? "");
      const channel = textAt(parseJson(interaction.privateMetadata), "channelId") || chosen;
      if (channel !== "") {
        const { text, blocks } = message;
        const posted = await gateway.web.call("chat.postEphemeral", {
          channel,
          user: interaction.userId,
          text,
          blocks,
        });
        if (posted.ok || posted.kind === "lost") return;
      } else if (await showHome(interaction, gateway, { said: message })) return;
      await reply.privately(message);
    },
  };
}
