import * as z from "zod";
import { sentence } from "../../messages/message.ts";
import { md } from "../../messages/text.ts";
import { defineCommand } from "../../registry/define.ts";
import type { ReadContext } from "../context.ts";

export const thaw = defineCommand({
  kind: "read",
  name: "gatehouse thaw",
  summary: "Allow changes again",
  example: "/gatehouse thaw",
  class: "administer",
  args: z.object({}),
  async answer(_args, { journal, person, tellBusy }: ReadContext) {
    if (!(await journal.thaw(person.id))) return sentence(md`Changes were not frozen.`);
    const told = md`Changes are allowed again: ${person.name} ended the freeze. What it turned away has *Request again* on its message.`;
    await tellBusy(`thaw-${await journal.now()}`, sentence(told));
    return sentence(
      md`Changes are allowed again. What was requested during the freeze won't run on its own; request again.`,
    );
  },
});
