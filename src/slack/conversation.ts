import { md } from "../messages/text.ts";
import { apologise, say } from "./apology.ts";
import type { Ask } from "./ask.ts";
import { checkDialog, submitDialog } from "./dialog-submit.ts";
import { dialogCallback } from "./dialog-view.ts";
import { press } from "./press.ts";
import type { Handlers } from "./handlers.ts";
import { showHome } from "./home.ts";
import type { Reply } from "./reply.ts";
import { replyThere } from "./reply-there.ts";
import { sameAgain } from "./change.ts";
import { checkRoll, submitRoll } from "./roll-submit.ts";
import { rollCallback } from "./roll-view.ts";
import { runWords } from "./run.ts";
import { restartCallback, restartChosen, shortcut } from "./shortcuts.ts";
import { suggest } from "./suggest.ts";
import type { Talk } from "./talk.ts";
import { settleByWord, verdictCallback } from "./verdict-modal.ts";
import { mayGoWithoutRedis, readWithoutRedis } from "./without-redis.ts";

/** What Gatehouse does with what reached it. The listeners have acked; every answer goes through `reply`. */
export function createConversation(talk: Talk): Omit<Handlers, "peopleChanged"> {
  return {
    async handle(ask: Ask, reply: Reply): Promise<void> {
      switch (ask.kind) {
        case "command":
        case "mention":
          return runWords(ask.text, ask, reply, talk);
        case "button":
          return press(ask, reply, talk);
        case "home":
          return showHome(ask, talk);
        case "shortcut":
          return shortcut(ask, reply, talk);
        case "submission":
          return submitted(ask, replyThere(ask, reply, talk), talk);
      }
    },

    /** The same delivery came again: nothing is done, but the person hears how the first one stands. */
    async repeated(ask: Ask, reply: Reply): Promise<void> {
      const first = await talk.store.madeBy(ask.id);
      if (first) await reply.privately(await sameAgain(first.record.id, talk));
    },

    /** A submitted modal, before its ack: errors appear on the fields. */
    async submit(
      ask: Extract<Ask, { kind: "submission" }>,
    ): Promise<{ errors: Record<string, string> } | undefined> {
      if (ask.callback === verdictCallback) return settleByWord(ask, talk);
      if (ask.callback === dialogCallback) return checkDialog(ask, talk);
      if (ask.callback === rollCallback) return checkRoll(ask, talk);
      return undefined;
    },

    suggest: (request) => suggest(request, talk),

    mayGoWithoutRedis: (ask) => mayGoWithoutRedis(ask, talk),
    readWithoutRedis: (ask, reply) => readWithoutRedis(ask, reply, talk),

    /** Asked before a gateway died, too long ago to be done now: the person is told instead. */
    async tooLate(reply: Reply): Promise<void> {
      await reply.privately(
        say(
          md`Gatehouse was interrupted while it read your command. Nothing was done: please send it again.`,
        ),
      );
    },
  };
}

async function submitted(
  ask: Extract<Ask, { kind: "submission" }>,
  reply: Reply,
  talk: Talk,
): Promise<void> {
  try {
    if (ask.callback === restartCallback) await restartChosen(ask, reply, talk);
    if (ask.callback === dialogCallback) await submitDialog(ask, reply, talk);
    if (ask.callback === rollCallback) await submitRoll(ask, reply, talk);
  } catch (error) {
    await reply.privately(apologise(error, talk.log));
  }
}
