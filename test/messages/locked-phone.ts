import { describe, expect, it } from "vitest";
import { type Message } from "../../src/messages/blocks.ts";
import { asPost } from "../../src/messages/card.ts";

/** Who and what a message is about. Each kind is also drawn with names and reasons as long as they come. */
export interface About {
  who: string;
  vm: string;
  why: string;
}
export const usual: About = { who: "olivia", vm: "db-1", why: "bad migration" };
const endless: About = {
  who: "Olivia Maria van der Hoeven-Castellanos (on call, EMEA)",
  vm: `db-${"x".repeat(120)}`,
  why: "the migration of last night left half of the orders without their customers ".repeat(4),
};

/** A kind of message, who reads it, and what a locked phone shows of one about the usual things. */
export type Kind = [
  kind: string,
  reader: string,
  (about: About) => Message | Promise<Message>,
  shown: string,
];

/** What no locked phone can show: IDs of people, requests, and VMs, and Slack's markup. */
const unreadable = /<[@#!]|[*`]|\b(r|roll)-[a-z0-9]{8,}\b|\b[UCT]0[A-Z0-9]+\b|vm-payments-|_/;

export function judgeOnLockedPhone(kinds: readonly Kind[]): void {
  describe("what a locked phone shows", () => {
    it.each(kinds)("of %s, to the %s", async (_kind, _reader, make, shown) => {
      const { text } = asPost(await make(usual));
      expect(text).toBe(shown);
      expect(text).not.toMatch(unreadable);
      const long = asPost(await make(endless));
      expect(long.text.length).toBeLessThanOrEqual(150);
      expect(long.text).not.toMatch(unreadable);
    });
  });
}
