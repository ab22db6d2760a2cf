import * as z from "zod";
import { sentence, md, name } from "../../messages/message.ts";
import { defineCommand } from "../../registry/define.ts";
import type { ReadContext } from "../context.ts";

export const freeze = defineCommand({
  kind: "read",
  name: "gatehouse freeze",
  summary: "Stop every change that was not sent yet",
  example: "/gatehouse freeze incident 4711, storage is failing",
  class: "administer",
  // Stopping changes is always safe
  approversToo: true,
  args: z.object({
    reason: z
      .string()
      .max(300)
      .optional()
      .meta({ isRest: true, description: "shown with every refusal during the freeze" }),
  }),
  async answer({ reason = "" }, { journal, person }: ReadContext) {
    const isNew = await journal.freeze({ by: person.name, id: person.id, reason });
    return sentence(
      isNew
        ? md`🧊 All changes are frozen. Reads still work. ${name("/gatehouse thaw")} ends the freeze.`
        : md`🧊 Changes are already frozen; the first reason remains. ${name("/gatehouse status")} shows it.`,
    );
  },
});
