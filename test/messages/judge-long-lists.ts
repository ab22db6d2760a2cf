import { describe, expect, it } from "vitest";
import type { Message } from "../../src/messages/blocks.ts";
import { complaintsOf, shownText } from "../commands/shown-text.ts";

export const nameOf = (n: number) => `vm-${n}-${"confidential-workload-".repeat(4)}`;
export const each = <T>(many: number, make: (n: number) => T): T[] =>
  Array.from({ length: many }, (_, n) => make(n + 1));

export type LongList = [what: string, many: number, made: Message, rest: (left: number) => string];

/** How many of the VMs are in a section or a row of a table, rather than in a menu. */
const shownOf = (made: Message, many: number) => {
  const blocks = made.blocks.filter(({ type }) => type !== "actions");
  const text = shownText({ ...made, blocks });
  return each(many, (n) => `vm-${n}-`).filter((name) => text.includes(name)).length;
};

export function judgeLongLists(lists: readonly LongList[]): void {
  describe("a list that is longer than a message", () => {
    it.each(lists)(
      "is cut to what Slack takes, and counts the others: %s",
      (_what, many, made, rest) => {
        expect(complaintsOf(made)).toEqual([]);
        const shown = shownOf(made, many);
        expect(shown).toBeGreaterThan(4);
        expect(shown).toBeLessThan(many);
        expect(shownText(made)).toContain(rest(many - shown));
        expect(shownText(made)).not.toContain("more not shown");
      },
    );
  });
}
