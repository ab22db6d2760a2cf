import * as z from "zod";
import { type Message, md, notice, sentence } from "../../messages/message.ts";
import { defineCommand } from "../../registry/define.ts";
import type { ReadContext } from "../../commands/context.ts";

export const thaw = defineCommand({
  name: "gatehouse thaw",
  summary: "Allow changes again",
  example: "/gatehouse thaw",
  class: "administer",
  endsFreeze: true,
  args: z.object({}),
  async answer(_args, { journal, person, tellBusy }: ReadContext) {
    if (!(await journal.thaw(person.id))) return sentence(md`Changes were not frozen.`);
    await tellBusy(`thaw-${await journal.now()}`, thawNews(person.name));
    return sentence(
      md`Changes are allowed again. What was requested during the freeze won't run on its own; request again.`,
    );
  },
});

/** The message for channels where people wait for something. */
export function thawNews(by: string): Message {
  return notice(
    md`Changes are allowed again: ${by} ended the freeze. Requests that it canceled have *Request again* on their messages.`,
  );
}
