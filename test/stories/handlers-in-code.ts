import { readSources } from "../structure/sources.ts";

/** Names of fields of a form: what is typed into them means nothing by itself. */
const fields = new Set(["roll:most", "roll:failures", "roll:number", "roll:canary"]);

/** Every action that can be pressed and every `form …` that can be submitted, as the code names them; not `run:` of commands. */
export function handlersInCode(): string[] {
  const found = new Set<string>();
  for (const [, text] of readSources(["src"])) {
    for (const [, action = ""] of text.matchAll(
      /"((?:vote|ask|review|console|digest|dialog|request|roll|proposal):[a-z-]+)"/g,
    ))
      if (!fields.has(action)) found.add(action);
    const [, table = ""] = /\nconst presses: [^]+? = \{([^]+?)\n\};/.exec(text) ?? [];
    for (const [, action = ""] of table.matchAll(/^ {2}"?([a-z:-]+)"?:/gm)) found.add(action);
    for (const [, form = ""] of text.matchAll(/Callback = "([^"]+)"/g)) found.add(`form ${form}`);
  }
  return [...found].toSorted();
}
