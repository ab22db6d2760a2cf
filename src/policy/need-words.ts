import type { VoteNeed } from "./vote-needs.ts";

/** A need, and what those whom it names are called (`calledIn`). */
export interface NamedNeed extends Pick<VoteNeed, "required"> {
  called: readonly string[];
}

/** Stands for every full member, as `*` does. */
const everyone = "any full member";

/** Names of what a need lists: `@pay-leads`, `amir`. Never an ID, and never a mention. */
export function calledIn(
  { from }: Pick<VoteNeed, "from">,
  nameOf: (id: string) => string | undefined,
): readonly string[] {
  if (from.includes("*")) return [everyone];
  return [...new Set(from.map((id) => nameOf(id) ?? unnamed(id)))];
}

function unnamed(id: string): string {
  return id.startsWith("S") ? "a user group without a name" : "a person without a name";
}

const numbers = ["none", "one", "two", "three", "four", "five"];
const maxNamed = 4;

/** `one of @pay-leads and one of @security`, `two of @pay-leads or amir`, `amir`. */
export function needsInWords(needs: readonly NamedNeed[]): string {
  return joined(needs.map(needInWords), "and");
}

/** `Needs one of @pay-leads and one of @security.` */
export function needsWords(
  needs: readonly VoteNeed[],
  nameOf: (id: string) => string | undefined,
): string {
  const named = needs.map((need) => ({ ...need, called: calledIn(need, nameOf) }));
  return `Needs ${needsInWords(named)}.`;
}

function needInWords({ required, called }: NamedNeed): string {
  const many = numbers[required] ?? String(required);
  if (called[0] === everyone) return required === 1 ? everyone : `${many} full members`;
  // A group, and what stands for one, may have any number of members
  const arePeople = called.every((one) => !/^@|^a user group/.test(one));
  if (arePeople && called.length <= required) return joined(called, "and");
  const more = called.length - maxNamed;
  const shown = more > 0 ? [...called.slice(0, maxNamed), `${more} more`] : called;
  return `${many} of ${joined(shown, "or")}`;
}

/** `a`, `a and b`, `a, b, and c`. */
export function joined(words: readonly string[], link: "and" | "or"): string {
  if (words.length < 3) return words.join(` ${link} `);
  return `${words.slice(0, -1).join(", ")}, ${link} ${words.at(-1)}`;
}
