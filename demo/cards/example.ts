import type { HomeView, ModalView } from "@slack/types";
import type { Message } from "../../src/messages/blocks.ts";
import type { Rendered } from "../../src/slack/validate-blocks.ts";

/** Who and what a message is about. */
export interface About {
  who: string;
  vm: string;
  why: string;
}
export const usual: About = { who: "olivia", vm: "db-1", why: "bad migration" };

/** Names and a reason as long as they come. */
export const endless: About = {
  who: "Olivia Maria van der Hoeven-Castellanos (on call, EMEA)",
  vm: `db-${"x".repeat(120)}`,
  why: "the migration of last night left half of the orders without their customers ".repeat(4),
};

/** A message, a form, or the Home tab. */
export type Shown = Message | ModalView | HomeView;

/** A kind of message that Gatehouse makes, with a way to make one. */
export interface Example {
  /** What it is: unique among all examples. */
  name: string;
  make(about: About): Shown | Promise<Shown>;
  /** What a locked phone shows of one about the usual things; undefined where it notifies nobody. */
  push?: string;
  /** Whom it notifies. */
  reader?: string;
  /**
   * Set where it lists more VMs than a message has room for, called by `longName`: how many, and
   * what it says of the others.
   */
  long?: { many: number; rest: (left: number) => string };
}

/** The time of all examples: the night of 20 November 2026. */
export const at = Date.parse("2026-11-20T03:12:00Z");

/** What `doctor` renders, as an example has it. */
export function someShown(rendered: Rendered): Shown {
  if ("view" in rendered) return rendered.view as ModalView;
  return { text: "", blocks: rendered.message.blocks as Message["blocks"] };
}
