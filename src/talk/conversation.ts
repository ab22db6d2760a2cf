import { UserError } from "../errors.ts";
import { md } from "../messages/markdown.ts";
import type { DependencyProbe } from "../monitor/dependency-probe.ts";
import type { GivenUp } from "../queue/interactions.ts";
import { say } from "../slack/error-reply.ts";
import { textAt } from "../slack/json.ts";
import type {
  Actor,
  InteractionHandlers,
  Interaction,
  Reply,
  ViewSubmission,
  SubmissionResult,
} from "../slack/receive/interaction.ts";
import type { ListenedTo } from "../slack/receive/listeners.ts";
import { parseJson } from "../text/parse-json.ts";
import { replaceCommandWords } from "./command-words.ts";
import { dialogCallback } from "./form-view.ts";
import { checkForm, fieldError, submitForm } from "./form.ts";
import type { Act, Contributions, FormHandler, GatewayContext } from "./gateway-context.ts";
import { homeTabOf } from "./service-keys.ts";
import { buttonFamilies, press } from "./press.ts";
import { replyWithError } from "./reply-with-error.ts";
import { runWords } from "./run.ts";
import { submitPicker } from "./submit-picker.ts";
import { alreadyRequested } from "./submit-change.ts";
import { suggest } from "./suggestions.ts";
import { seenBy } from "./visible-to.ts";
import { denialCallback, giveReason, outcomeCallback, recordOutcome } from "./vote.ts";
import { withoutRedis } from "./without-redis.ts";
import { originOfInteraction } from "./act-origin.ts";
import { pickCallback } from "./pick-target.ts";
import { shortcut } from "./shortcut.ts";
import type { Command } from "../registry/define.ts";
import { showOrSay } from "../slack/refused-message.ts";

const ownForms: readonly (readonly [callback: string, FormHandler])[] = [
  [dialogCallback, { beforeAck: checkForm, afterAck: submitForm }],
  [pickCallback, { afterAck: submitPicker }],
  [denialCallback, { beforeAck: giveReason }],
  [outcomeCallback, { beforeAck: recordOutcome }],
];

const formsOf = ({ forms }: Pick<Contributions, "forms">) =>
  new Map([...ownForms, ...Object.entries(forms)]);

/** The names of forms, shortcuts and buttons that Bolt registers listeners for. */
export const listenedTo = (
  contributed: Pick<Contributions, "forms" | "presses">,
  commands: readonly Command[],
): ListenedTo => ({
  forms: [...formsOf(contributed).keys()],
  shortcuts: commands.flatMap(({ shortcut: entry }) => entry?.callback ?? []),
  buttons: buttonFamilies(contributed),
});

export function createConversation(
  contextNow: () => GatewayContext,
  contributed: Pick<Contributions, "forms">,
  watch: Pick<DependencyProbe, "refused">,
): Omit<InteractionHandlers, "peopleChanged"> {
  const forms = formsOf(contributed);
  const seenNow = (viewer: Actor) => seenBy(viewer, contextNow());

  return {
    async handleInteraction(interaction: Interaction, anyReply: Reply): Promise<void> {
      const gateway = seenNow(interaction);
      const reply = replaceCommandWords(interaction, anyReply, gateway);
      const actOf = <I>(it: I): Act<I> => ({ interaction: it, reply, gateway });
      switch (interaction.kind) {
        case "command":
        case "mention":
          return replyWithError(actOf(interaction), (act) => runWords(interaction.text, act));
        case "button":
          if (interaction.view?.type !== "home") return replyWithError(actOf(interaction), press);
          return homeTabOf.ifAny(gateway)?.pressed(actOf(interaction));
        case "home":
          return void (await homeTabOf.ifAny(gateway)?.show(actOf(interaction)));
        case "shortcut":
          return shortcut(actOf(interaction));
        case "submission": {
          const act = { ...actOf(interaction), reply: replyWhereOpened(actOf(interaction)) };
          return replyWithError(act, async () => forms.get(interaction.callback)?.afterAck?.(act));
        }
      }
    },

    async repeated(interaction: Interaction, reply: Reply): Promise<void> {
      const gateway = seenNow(interaction);
      const first = await gateway.store.madeBy(originOfInteraction(interaction));
      if (first) await reply.privately(await alreadyRequested(first.record.id, gateway));
    },

    async submitBeforeAck(interaction: ViewSubmission): Promise<SubmissionResult | undefined> {
      const { beforeAck, afterAck } = forms.get(interaction.callback) ?? {};
      try {
        return await beforeAck?.({ interaction, gateway: seenNow(interaction) });
      } catch (error) {
        if (!(error instanceof UserError)) throw error;
        // The form has no input to show the error on. `afterAck` runs into the same refusal and
        // answers with it.
        if (afterAck && Object.keys(interaction.values).length === 0) return undefined;
        return fieldError(error, interaction.values);
      }
    },

    suggest: (request) => suggest(request, seenNow(request)),

    withoutRedis: (interaction, how) => withoutRedis(interaction, seenNow(interaction), how, watch),

    async giveUp(interaction: Interaction, reply: Reply, why: GivenUp): Promise<void> {
      const gateway = seenNow(interaction);
      const first = await gateway.store.madeBy(originOfInteraction(interaction));
      if (first) return reply.privately(await alreadyRequested(first.record.id, gateway));
      const { sentence, again } = givenUpWords[why];
      const way = md`${"/gatehouse jobs"} shows what was requested. ${again}`;
      await reply.privately(say(sentence, way));
    },
  };
}

const givenUpWords = {
  "too-late": {
    sentence: md`Gatehouse was interrupted at this for too long to go on, and doesn't know how far it came.`,
    again: md`If it isn't there, try again.`,
  },
  interrupted: {
    sentence: md`Gatehouse was interrupted twice at this, so it doesn't go on, and doesn't know how far it came.`,
    again: md`If it isn't there, ask an operator why Gatehouse ended before you try again.`,
  },
} satisfies Record<GivenUp, object>;

/**
 * A submission has no channel. The answer goes, visible to the person alone, to the channel in
 * which the form was opened or which was chosen in it; without one, to the Home tab.
 */
function replyWhereOpened({ interaction, reply, gateway }: Act<ViewSubmission>): Reply {
  return {
    ...reply,
    async privately(message) {
      const chosen = String(interaction.values["channel"] ?? "");
      const channel = textAt(parseJson(interaction.privateMetadata), "channelId") || chosen;
      if (channel !== "") {
        const posted = await showOrSay(message, (shown) =>
          gateway.web.call("chat.postEphemeral", { channel, user: interaction.userId, ...shown }),
        );
        if (posted.ok || posted.kind === "lost") return;
      } else if (await homeTabOf.ifAny(gateway)?.show({ interaction, gateway }, message)) return;
      await reply.privately(message);
    },
  };
}
