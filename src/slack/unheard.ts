import type { Message } from "../messages/message.ts";
import { md, name } from "../messages/text.ts";
import type { Ask } from "./ask.ts";
import { say } from "./apology.ts";
import type { Announcer } from "./announce.ts";

/**
 * Tells people later that an answer did not reach them because Slack was away, in their direct messages. Not what it said: an
 * answer may be for a moment only (a console's address), and is easily had again.
 */
export function createUnheard(announce: Announcer["announce"]): (ask: Ask) => Promise<void> {
  return async (ask) => {
    // The Home tab is opened again
    if (ask.kind === "home") return;
    await announce({
      id: `unheard:${ask.id}`,
      channelId: ask.userId,
      message: renderUnheard(ask),
    });
  };
}

function renderUnheard(ask: Ask): Message {
  const what =
    ask.kind === "command" ? name(`/${ask.text}`) : md`what you asked for a moment before`;
  return say(
    md`Slack was away when I answered ${what}.`,
    md`If no message about it stands in the channel, nothing was done. Please ask again.`,
  );
}
