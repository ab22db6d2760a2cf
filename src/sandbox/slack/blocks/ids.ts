import { randomBytes } from "node:crypto";
import { copyOf, type Fields, isFields, textOf } from "../fields.ts";
import type { SeenBlock } from "../seen.ts";
import { isInteractive } from "./walk.ts";

const randomId = () => randomBytes(4).toString("base64url").slice(0, 5);

/** A copy of the blocks in which every block and every interactive element has its id: Slack makes up the missing ones. */
export function withIds(blocks: readonly Fields[]): SeenBlock[] {
  return blocks.map((block) => {
    const copy = copyOf(block);
    nameElements(copy);
    return {
      ...copy,
      type: textOf(copy["type"]),
      block_id: textOf(copy["block_id"]) || randomId(),
    };
  });
}

function nameElements(value: unknown): void {
  if (Array.isArray(value)) {
    for (const item of value) nameElements(item);
  } else if (isFields(value)) {
    if (isInteractive(value)) value["action_id"] ??= randomId();
    if (Array.isArray(value["child_blocks"])) {
      for (const child of value["child_blocks"])
        if (isFields(child)) child["block_id"] ??= randomId();
    }
    for (const inner of Object.values(value)) if (typeof inner === "object") nameElements(inner);
  }
}
