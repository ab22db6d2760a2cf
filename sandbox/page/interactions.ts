import * as z from "zod";
import type { Outcome, PersonActions, TypeOptions, Where } from "../slack/actions.ts";

const place = {
  in: z.string().optional(),
  channel: z.string().optional(),
  value: z.string().optional(),
};
const choice = z.union([z.string(), z.array(z.string()), z.number(), z.null()]);

/** The page may call these functions of `PersonActions`, each with its words. */
const interactions = z.discriminatedUnion("action", [
  action("types", { channel: z.string(), text: z.string(), threadTs: z.string().optional() }),
  action("presses", { button: z.string(), ...place }),
  action("chooses", { element: z.string(), choice, ...place }),
  action("suggests", { element: z.string(), typed: z.string(), ...place }),
  action("submits", { values: z.record(z.string(), z.string()) }),
  action("closes", { all: z.boolean().optional() }),
  action("opensHome", {}),
  action("picksShortcut", { shortcut: z.string(), channel: z.string().optional() }),
  action("picksMessageShortcut", { shortcut: z.string(), ts: z.string() }),
  action("deletesMessage", { ts: z.string() }),
]);

export type Interaction = z.infer<typeof interactions>;

function action<T extends string, S extends z.core.$ZodLooseShape>(name: T, words: S) {
  return z.strictObject({ action: z.literal(name), as: z.string().optional(), ...words });
}

/** The interaction, or what is wrong with it. */
export function parseInteraction(json: unknown): Interaction | string {
  const parsed = interactions.safeParse(json);
  return parsed.success ? parsed.data : z.prettifyError(parsed.error);
}

/** Does it. Throws when a real person couldn't do it at all. The page has asked for confirmation already. */
export async function act(person: PersonActions, interaction: Interaction): Promise<Outcome> {
  switch (interaction.action) {
    case "types":
      return person.types(interaction.channel, interaction.text, threadOf(interaction));
    case "presses":
      return person.presses(interaction.button, { ...whereOf(interaction), confirm: "yes" });
    case "chooses":
      return person.chooses(interaction.element, interaction.choice, whereOf(interaction));
    case "suggests":
      return person.suggests(interaction.element, interaction.typed, whereOf(interaction));
    case "submits":
      return person.submits(interaction.values);
    case "closes":
      return person.closes(interaction.all === undefined ? {} : { all: interaction.all });
    case "opensHome":
      return person.opensHome();
    case "picksShortcut":
      return person.picksShortcut(interaction.shortcut, interaction.channel);
    case "picksMessageShortcut":
      return person.picksMessageShortcut(interaction.shortcut, interaction.ts);
    default:
      return person.deletesMessage(interaction.ts);
  }
}

function threadOf({ threadTs }: { threadTs?: string | undefined }): TypeOptions {
  return threadTs === undefined ? {} : { threadTs };
}

function whereOf(words: {
  in?: string | undefined;
  channel?: string | undefined;
  value?: string | undefined;
}): Where {
  return {
    ...(words.in === undefined ? {} : { in: words.in }),
    ...(words.channel === undefined ? {} : { channel: words.channel }),
    ...(words.value === undefined ? {} : { value: words.value }),
  };
}
