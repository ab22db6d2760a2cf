import * as z from "zod";
import type { Outcome, PersonActions, TypeOptions, Where } from "../slack/actions.ts";

/** What the page may ask for: the functions of `PersonActions`, each with its words. */
const place = {
  in: z.string().optional(),
  channel: z.string().optional(),
  value: z.string().optional(),
};
const choice = z.union([z.string(), z.array(z.string()), z.number(), z.null()]);

const deeds = z.discriminatedUnion("action", [
  action("types", { channel: z.string(), text: z.string(), threadTs: z.string().optional() }),
  action("presses", { button: z.string(), ...place }),
  action("chooses", { element: z.string(), choice, ...place }),
  action("suggests", { element: z.string(), typed: z.string(), ...place }),
  action("submits", { values: z.record(z.string(), z.string()) }),
  action("closes", { all: z.boolean().optional() }),
  action("opensHome", {}),
  action("picksShortcut", { shortcut: z.string() }),
  action("picksMessageShortcut", { shortcut: z.string(), ts: z.string() }),
  action("reacts", { ts: z.string(), emoji: z.string() }),
  action("deletesMessage", { ts: z.string() }),
]);

export type Deed = z.infer<typeof deeds>;

function action<T extends string, S extends z.core.$ZodLooseShape>(name: T, words: S) {
  return z.strictObject({ action: z.literal(name), as: z.string().optional(), ...words });
}

/** The deed, or what is wrong with it. */
export function parseDeed(json: unknown): Deed | string {
  const parsed = deeds.safeParse(json);
  return parsed.success ? parsed.data : z.prettifyError(parsed.error);
}

/** Does it. Throws when a real person couldn't do it at all. The page has asked for confirmation already. */
export async function act(person: PersonActions, deed: Deed): Promise<Outcome> {
  switch (deed.action) {
    case "types":
      return person.types(deed.channel, deed.text, threadOf(deed));
    case "presses":
      return person.presses(deed.button, { ...whereOf(deed), confirm: "yes" });
    case "chooses":
      return person.chooses(deed.element, deed.choice, whereOf(deed));
    case "suggests":
      return person.suggests(deed.element, deed.typed, whereOf(deed));
    case "submits":
      return person.submits(deed.values);
    case "closes":
      return person.closes(deed.all === undefined ? {} : { all: deed.all });
    case "opensHome":
      return person.opensHome();
    case "picksShortcut":
      return person.picksShortcut(deed.shortcut);
    case "picksMessageShortcut":
      return person.picksMessageShortcut(deed.shortcut, deed.ts);
    case "reacts":
      return person.reacts(deed.ts, deed.emoji);
    default:
      return person.deletesMessage(deed.ts);
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
