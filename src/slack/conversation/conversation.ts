import { UserError } from "../../errors.ts";
import { md } from "../../messages/text.ts";
import type { Block, Message } from "../../messages/message.ts";
import type { Watch } from "../../outages/outages.ts";
import type { Command } from "../../registry/define.ts";
import { asksForChange } from "../../registry/invocation.ts";
import { parseCommand } from "../../registry/parse.ts";
import { say } from "../error-reply.ts";
import {
  type Handlers,
  type Interaction,
  isDirect,
  type Reply,
  type Submission,
  type SubmissionResult,
} from "../receive/interaction.ts";
import { parseJson, textAt } from "../web.ts";
import { answerWithoutRedis } from "./answer.ts";
import { dialogCallback, rolloutCallback } from "./form-view.ts";
import { checkForm, fieldError, submitForm } from "./form.ts";
import { type Act, type BeforeAck, type GatewayContext, orSayWhy } from "./gateway-context.ts";
import { pressedAtHome, showHome } from "./home.ts";
import { press } from "./press.ts";
import { pickCallback, runWords, shortcut, targetChosen } from "./run.ts";
import { seenBy } from "./seen-by.ts";
import { alreadyRequested } from "./submit.ts";
import { suggest } from "./suggest.ts";
import { denialCallback, giveReason, outcomeCallback, recordOutcome } from "./vote.ts";

/** What a submitted form does before the ack, where what is wrong with it can be shown on it, and after it. */
interface FormHandler {
  check?(act: BeforeAck<Submission>): Promise<SubmissionResult | undefined>;
  submit?(act: Act<Submission>): Promise<void>;
}

const forms: Readonly<Record<string, FormHandler>> = {
  [dialogCallback]: { check: checkForm, submit: submitForm },
  [rolloutCallback]: { check: checkForm, submit: submitForm },
  [pickCallback]: { submit: targetChosen },
  [denialCallback]: { check: giveReason },
  [outcomeCallback]: { check: recordOutcome },
};

function handlerOf({ callback }: Submission): FormHandler {
  return (Object.hasOwn(forms, callback) ? forms[callback] : undefined) ?? {};
}

export function createConversation(
  contextNow: () => GatewayContext,
  watch: Pick<Watch, "refused">,
): Omit<Handlers, "peopleChanged"> {
  const seenNow = (by: Pick<Interaction, "userId" | "teamId">) => seenBy(by, contextNow());

  return {
    async handle(interaction: Interaction, anyReply: Reply): Promise<void> {
      const gateway = seenNow(interaction);
      const reply = wordsFor(interaction, anyReply, gateway);
      const by = <I>(one: I): Act<I> => ({ interaction: one, reply, gateway });
      switch (interaction.kind) {
        case "command":
        case "mention":
          return orSayWhy(by(interaction), (act) => runWords(interaction.text, act));
        case "button":
          if (interaction.view?.type !== "home") return orSayWhy(by(interaction), press);
          return pressedAtHome(by(interaction), (act) => orSayWhy(act, press));
        case "home":
          return void (await showHome(by(interaction)));
        case "shortcut":
          return shortcut(by(interaction));
        case "submission": {
          const act = { ...by(interaction), reply: replyWhereOpened(by(interaction)) };
          return orSayWhy(act, async () => handlerOf(interaction).submit?.(act));
        }
      }
    },

    async repeated(interaction: Interaction, reply: Reply): Promise<void> {
      const gateway = seenNow(interaction);
      const first = await gateway.store.madeBy(interaction.id);
      if (first) await reply.privately(await alreadyRequested(first.record.id, gateway));
    },

    async submit(interaction: Submission): Promise<SubmissionResult | undefined> {
      const { check, submit } = handlerOf(interaction);
      try {
        return await check?.({ interaction, gateway: seenNow(interaction) });
      } catch (error) {
        if (!(error instanceof UserError)) throw error;
        // Nothing to show it on: after the ack it is refused for the same reason
        if (submit && Object.keys(interaction.values).length === 0) return undefined;
        return fieldError(error, interaction.values);
      }
    },

    suggest: (request) => suggest(request, seenNow(request)),

    withoutRedis: (interaction) => withoutRedis(interaction, seenNow(interaction), watch),

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
  return (reply) => {
    const said = wordsFor(interaction, reply, gateway);
    return answerWithoutRedis(parsed, { interaction, reply: said, gateway });
  };
}

/** A submission has no channel: answers privately where its form was opened, else on the Home tab. */
function replyWhereOpened({ interaction, reply, gateway }: Act<Submission>): Reply {
  return {
    ...reply,
    async privately(message) {
      const chosen = String(interaction.values["channel"] ?? "");
      const channel = textAt(parseJson(interaction.privateMetadata), "channelId") || chosen;
      if (channel !== "") {
        const { text, blocks } = message;
        const user = interaction.userId;
        const posted = await gateway.web.call("chat.postEphemeral", {
          channel,
          user,
          text,
          blocks,
        });
        if (posted.ok || posted.kind === "lost") return;
      } else if (await showHome({ interaction, gateway }, { said: message })) return;
      await reply.privately(message);
    },
  };
}

/**
 * Answers in a thread, where slash commands don't work: `/vm list` in a code span becomes `@gatehouse vm list`, and elsewhere
 * loses its slash.
 */
function wordsFor(interaction: Interaction, reply: Reply, { commands }: GatewayContext): Reply {
  if (interaction.kind !== "mention" || isDirect(interaction)) return reply;
  const reworded = ({ text, blocks }: Message): Message => ({
    text: mentionWords(text, commands),
    blocks: blocks.map((block) => withWords(block, commands)),
  });
  return {
    ...reply,
    privately: (said) => reply.privately(reworded(said)),
    instead: (said) => reply.instead(reworded(said)),
    replace: (said) => reply.replace(reworded(said)),
  };
}

export function mentionWords(text: string, commands: readonly Command[]): string {
  const roots = [...new Set(commands.map(({ name }) => name.split(" ")[0] ?? ""))].join("|");
  const command = new RegExp(`(?<![\\w/.:-])/(${roots})(?![\\w/.-])`, "g");
  return text
    .split("`")
    .map((part, index) =>
      index % 2 === 1
        ? part.replace(command, "@gatehouse $1").replace("@gatehouse gatehouse", "@gatehouse")
        : part.replaceAll(command, "$1"),
    )
    .join("`");
}

/** Only mrkdwn: labels and cells of tables are names. */
function withWords(block: Block, commands: readonly Command[]): Block {
  return JSON.parse(JSON.stringify(block), (_key, value: unknown) => {
    if (typeof value !== "object" || value === null) return value;
    const { type, text } = value as { type?: unknown; text?: unknown };
    if (type !== "mrkdwn" || typeof text !== "string") return value;
    return { ...value, text: mentionWords(text, commands) };
  }) as Block;
}
