import { glob as globShape } from "../config/policy-values.ts";
import { type Event, events } from "../digests/subscriptions.ts";
import { UserError } from "../errors.ts";
import { type Markdown, md, name } from "../messages/text.ts";
import type { ReadContext } from "./context.ts";

const usage = "Use `/gatehouse subscribe payments-* trouble,drift,changes`.";
export const noneNamed = () => new UserError("No VM or project is named.", usage);

/** Throws UserError where there is nothing to subscribe. */
export function checkPlace({ channelId }: Pick<ReadContext, "channelId">): void {
  if (!/^[CG]/.test(channelId)) throw new UserError("Run this in a channel.");
}

export interface SubscriptionWords {
  globs: readonly string[];
  events: readonly Event[];
}

const isEvent = (word: string): word is Event => events.some((event) => event === word);

/** Names, globs, and events in any order, with commas or spaces. Throws UserError. */
export function readWords(text: string): SubscriptionWords {
  const words = [...new Set(text.split(/[\s,]+/).filter(Boolean))];
  const chosen = words.map((word) => word.toLowerCase()).filter(isEvent);
  const globs = words.filter((word) => !isEvent(word.toLowerCase()));
  for (const glob of globs) {
    const shown = glob.slice(0, 40);
    if (!globShape.safeParse(glob).success)
      throw new UserError(`${shown} can't be the name of a VM or project.`, usage);
  }
  return { globs, events: events.filter((event) => chosen.includes(event)) };
}

/** In the audit trail, before anything is done. */
export const noteWords = (
  what: "subscribe" | "unsubscribe",
  { globs, events: some }: SubscriptionWords,
  { journal, person, channelId }: Pick<ReadContext, "journal" | "person" | "channelId">,
) =>
  journal.note({
    what,
    who: person.id,
    team: person.teamId,
    channel: channelId,
    words: [...globs, ...some].join(" ").slice(0, 300),
  });

export const named = (globs: readonly string[]): Markdown =>
  globs.map((glob) => name(glob)).reduce((all, one) => md`${all}, ${one}`);

/** `trouble, drift, and changes` */
export function eventWords(some: readonly Event[]): string {
  if (some.length < 3) return some.join(" and ");
  return `${some.slice(0, -1).join(", ")}, and ${some.at(-1)}`;
}
