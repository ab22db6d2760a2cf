import { fold } from "../../text/fold.ts";
import * as z from "zod";
import { subscriptionsOf } from "./subscriptions.ts";
import { UserError } from "../../errors.ts";
import { sentence } from "../../messages/card.ts";
import { channelLink, md, listed } from "../../messages/markdown.ts";
import { defineCommand, rest } from "../../registry/define.ts";
import { type ReadContext, noteInChannel } from "../../commands/context.ts";
import { asNoted, checkPlace, eventWords, noneNamed, readWords } from "./subscribe.ts";
import { topics } from "../../core/events/event.ts";

export const unsubscribe = defineCommand({
  name: "gatehouse unsubscribe",
  aliases: ["unfollow"],
  summary: "End this channel's subscriptions",
  example: "/gatehouse unsubscribe payments/*",
  class: "change",
  speaksFor: () => true,
  args: z.object({
    targets: z.string().max(500).meta({
      isGlobs: true,
      description: "the names or globs, as `/gatehouse subscribe` shows them; or `all`",
    }),
    events: rest(200, "only these: `trouble`, `drift`, `changes`").optional(),
  }),
  async answer({ targets, events: more = "" }, context: ReadContext) {
    checkPlace(context);
    const { channelId } = context;
    const subscriptions = subscriptionsOf(context);
    const before = await subscriptions.of(channelId);
    const isAll = fold(targets.trim()) === "all";
    const words = readWords(isAll ? more : `${targets} ${more}`);
    if (words.globs.length === 0 && !isAll) throw noneNamed();
    const ended = isAll ? before : before.filter(({ glob }) => words.globs.some(isLike(glob)));
    const strange = words.globs.find(
      (glob) => !before.some((subscription) => isLike(glob)(subscription.glob)),
    );
    if (strange !== undefined || ended.length === 0) {
      const target = strange === undefined ? "anything" : strange;
      throw new UserError(
        `This channel isn't subscribed to ${target}.`,
        "`/gatehouse subscribe` shows what it is subscribed to.",
      );
    }
    await noteInChannel(context, "unsubscribe", channelId, asNoted(words));
    const only = words.events.length > 0 ? words.events : topics;
    for (const subscription of ended) {
      const left = subscription.events.filter((topic) => !only.includes(topic));
      if (left.length === 0) await subscriptions.remove(subscription);
      else await subscriptions.set({ ...subscription, events: left });
    }
    const globs = ended.map(({ glob }) => glob);
    return sentence(
      md`Gatehouse no longer tells ${channelLink(channelId)} about ${listed(globs, globs.length)}: ${eventWords(only)}.`,
    );
  },
});

const isLike = (glob: string) => (other: string) => fold(other) === fold(glob);
