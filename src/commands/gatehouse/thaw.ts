import * as z from "zod";
import { md, sentence } from "../../messages/message.ts";
import { defineCommand } from "../../registry/define.ts";
import { thawNews } from "../../requests/after-result.ts";
import type { ReadContext } from "../context.ts";

export const thaw = defineCommand({
  name: "gatehouse thaw",
  summary: "Allow changes again",
  example: "/gatehouse thaw",
  class: "administer",
  args: z.object({}),
  async answer(_args, { journal, person, tellBusy }: ReadContext) {
    if (!(await journal.thaw(person.id))) return sentence(md`Changes were not frozen.`);
    await tellBusy(`thaw-${await journal.now()}`, thawNews(person.name));
    return sentence(
      md`Changes are allowed again. What was requested during the freeze won't run on its own; request again.`,
    );
  },
});
