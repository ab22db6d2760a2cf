import type { Button } from "@slack/types";
import type { Block } from "./blocks.ts";
import { limits } from "./limits.ts";

const effectOf = ({ action_id: action, value, url }: Button) => [action, value, url].join(" ");

const isButton = (element: { type: string }): element is Button => element.type === "button";

/** The buttons of a block, each in its place. */
function withButtons(block: Block, change: (button: Button) => Button): Block {
  if (block.type === "section" && block.accessory && isButton(block.accessory))
    return { ...block, accessory: change(block.accessory) };
  if (block.type !== "actions") return block;
  return {
    ...block,
    elements: block.elements.map((element) => (isButton(element) ? change(element) : element)),
  };
}

/**
 * Numbers buttons of a message that do different things to what sounds alike: `Details vm restart web-2, 2 of 3`, as of
 * two restarts of one VM within a second. A button that doesn't say what it is about stays as it is: it lacks that.
 */
export function soundingApart(blocks: readonly Block[]): Block[] {
  const effects = new Map<string, Set<string>>();
  for (const block of blocks)
    withButtons(block, (button) => {
      const { accessibility_label: label } = button;
      if (label !== undefined)
        effects.getOrInsertComputed(label, () => new Set()).add(effectOf(button));
      return button;
    });
  if ([...effects.values()].every(({ size }) => size === 1)) return [...blocks];
  return blocks.map((block) =>
    withButtons(block, (button) => {
      const { accessibility_label: label = "" } = button;
      const alike = [...(effects.get(label) ?? [])];
      if (alike.length < 2) return button;
      const place = `, ${alike.indexOf(effectOf(button)) + 1} of ${alike.length}`;
      return {
        ...button,
        accessibility_label: `${label.slice(0, limits.buttonText - place.length)}${place}`,
      };
    }),
  );
}
