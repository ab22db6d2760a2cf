import { type Block, type Message, context, section } from "./blocks.ts";
import { withParts } from "./card.ts";
import { Markdown, lines } from "./markdown.ts";

// A message that is posted is changed by its blocks, because they are what is stored of it.

/**
 * The message with `words` in place of its button `<action> <value>`, and without the sentence
 * `asks` that asks people to press it, because it was pressed. Undefined when the message doesn't
 * have that button.
 */
export function answered(
  { text, blocks }: Message,
  named: string,
  words: Markdown,
  asks?: string,
): Message | undefined {
  const isIt = (element: object) =>
    "action_id" in element &&
    "value" in element &&
    [element.action_id, element.value].join(" ") === named;
  const withoutAsk = (markup: string) =>
    new Markdown(asks === undefined ? markup : markup.replace(asks, "").replace(/[ ·]+$/, ""));
  const hasIt = (block: Block | undefined) =>
    block?.type === "actions" && block.elements.some(isIt);
  const shown = blocks.map((block, n) => {
    if (block.type === "section" && block.accessory && isIt(block.accessory))
      return section(lines(withoutAsk(block.text?.text ?? ""), words));
    if (block.type === "context" && hasIt(blocks[n + 1]))
      return context(
        ...block.elements.map((element) =>
          withoutAsk(element.type === "mrkdwn" ? element.text : ""),
        ),
      );
    if (block.type !== "actions" || !block.elements.some(isIt)) return block;
    const elements = block.elements.filter((element) => !isIt(element));
    return [section(words), ...(elements.length > 0 ? [{ ...block, elements }] : [])];
  });
  if (shown.every((block, index) => block === blocks[index])) return undefined;
  return withParts({ text, blocks: shown.flat() });
}

/** The buttons of a message that run one of these actions, as `answered` names them. */
export function buttonsOf(
  { blocks }: Pick<Message, "blocks">,
  actions: readonly string[],
): string[] {
  const elements = blocks.flatMap((block): readonly object[] => {
    if (block.type === "actions") return block.elements;
    return block.type === "section" && block.accessory ? [block.accessory] : [];
  });
  return elements.flatMap((element) =>
    "action_id" in element && "value" in element && actions.includes(String(element.action_id))
      ? [[element.action_id, element.value].join(" ")]
      : [],
  );
}
