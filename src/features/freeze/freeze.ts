import * as z from "zod";
import { sentence } from "../../messages/card.ts";
import { lines, type Markdown, md, name } from "../../messages/markdown.ts";
import { defineCommand, rest } from "../../registry/define.ts";
import type { ReadContext } from "../../commands/context.ts";
import { plainForm } from "../../text/fold.ts";
import { timeNamedIn } from "../../text/future-words.ts";

export const freeze = defineCommand({
  name: "gatehouse freeze",
  summary: "Stop every change that was not sent yet",
  example: "/gatehouse freeze incident 4711, storage is failing",
  class: "administer",
  // Approvers may freeze too, because stopping changes is always safe.
  approversToo: true,
  args: z.object({
    reason: rest(300, "shown with every refusal during the freeze").optional(),
  }),
  async answer({ reason = "" }, { journal, person, interaction }: ReadContext) {
    const { name: requester, id } = person;
    const isNew = await journal.freeze({ by: requester, id, reason, act: interaction?.id });
    // The act may be handled again, after a thaw ended its freeze.
    if (isNew && (await journal.freezeState()) === undefined)
      return sentence(md`Changes are allowed: someone has ended your freeze already.`);
    return sentence(
      isNew
        ? lines(
            md`🧊 All changes are frozen. Reads still work. ${name("/gatehouse thaw")} ends the freeze.`,
            notScheduled(reason),
          )
        : md`🧊 Changes are already frozen; the first reason remains. ${name("/gatehouse status")} shows it.`,
    );
  },
});

/**
 * Corrects a reason that reads like a schedule. It refuses nothing, because in an emergency a freeze
 * must not depend on how its reason is worded.
 */
function notScheduled(reason: string): Markdown | undefined {
  const time = timeNamedIn(reason, { onlyNames: false });
  if (time === undefined || !plainForm(reason).trimStart().startsWith(time)) return undefined;
  return md`It began at once and lasts until someone ends it: Gatehouse schedules nothing, so “${time}” is only its reason.`;
}
