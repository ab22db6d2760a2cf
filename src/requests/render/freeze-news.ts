import { type Message, notice } from "../../messages/message.ts";
import { md, name } from "../../messages/text.ts";

/** For channels where people wait for something. */
export function freezeNews({ by, reason }: { by: string; reason: string }): Message {
  return notice(
    md`🧊 ${by} froze all changes${reason ? md`: ${reason}` : ""}. What was not sent yet won't run; reads still work. ${name("/gatehouse thaw")} ends it.`,
  );
}

export function thawNews(by: string): Message {
  return notice(
    md`Changes are allowed again: ${by} ended the freeze. What it turned away has *Request again* on its message.`,
  );
}
