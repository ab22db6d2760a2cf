import * as z from "zod";
import { sentence } from "../../messages/card.ts";
import { md, name } from "../../messages/markdown.ts";
import { defineCommand } from "../../registry/define.ts";
import type { ReadContext } from "../../commands/context.ts";
import { freezeName } from "../../core/deliver/freeze-news.ts";

export const thaw = defineCommand({
  name: "gatehouse thaw",
  summary: "Allow changes again",
  example: "/gatehouse thaw",
  class: "administer",
  roles: ["ends-freeze"],
  args: z.object({}),
  async answer(_args, { journal, person, interaction, now }: ReadContext) {
    const asked = interaction && {
      act: interaction.id,
      askedAgoMs: Math.max(0, now() - interaction.at),
    };
    const thawed = await journal.thaw({ id: person.id, name: person.name, ...asked });
    if (thawed.kind === "not-frozen") return sentence(md`Changes were not frozen.`);
    if (thawed.kind === "newer")
      return sentence(
        md`🧊 Changes stay frozen, because ${freezeName(thawed.stands)} is newer than your command. To end it, type ${name("/gatehouse thaw")} again.`,
      );
    return sentence(
      md`Changes are allowed again: you ended ${freezeName(thawed.ended)}. What was requested during the freeze won't run on its own; request again.`,
    );
  },
});
