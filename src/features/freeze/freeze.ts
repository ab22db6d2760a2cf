import * as z from "zod";
import { md, name, sentence } from "../../messages/message.ts";
import { defineCommand, rest } from "../../registry/define.ts";
import type { ReadContext } from "../../commands/context.ts";

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
    const { name: by, id } = person;
    const isNew = await journal.freeze({ by, id, reason, act: interaction?.id });
    // The act may be handled again, after a thaw ended its freeze.
    if (isNew && (await journal.freezeState()) === undefined)
      return sentence(md`Changes are allowed: your freeze has been ended since.`);
    return sentence(
      isNew
        ? md`🧊 All changes are frozen. Reads still work. ${name("/gatehouse thaw")} ends the freeze.`
        : md`🧊 Changes are already frozen; the first reason remains. ${name("/gatehouse status")} shows it.`,
    );
  },
});
