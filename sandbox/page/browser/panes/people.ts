import type { SeenPerson } from "../../../slack/seen.ts";
import { el } from "../dom/dom.ts";
import type { Names } from "../text/draw-text.ts";

/** A coloured square with initials; the colour follows from the id, so that it is the same everywhere. */
export function drawAvatar(id: string, name: string, isBot: boolean): HTMLElement {
  const initials = name
    .split(/\s+/)
    .map((word) => word[0] ?? "")
    .join("")
    .slice(0, 2)
    .toUpperCase();
  return el(
    "span",
    { class: isBot ? "avatar app" : `avatar tint-${tintOf(id)}`, "aria-hidden": "true" },
    initials || "?",
  );
}

const tints = 8;

/** FNV-1a, begun where the people of the first screen get eight different tints. */
function tintOf(id: string): number {
  let hash = 97;
  for (const letter of id) hash = Math.imul(hash ^ (letter.codePointAt(0) ?? 0), 16_777_619) >>> 0;
  return (hash >>> 8) % tints;
}

const roles: Record<SeenPerson["role"], string> = {
  owner: "Owner",
  admin: "Admin",
  member: "Member",
  guest: "Guest",
  bot: "App",
  stranger: "Another company",
};

/** What tells people apart when switching: their groups, or else their role. */
export function describePerson(person: SeenPerson, { groups }: Pick<Names, "groups">): string {
  const mine = groups
    .filter((group) => group.userIds.includes(person.id))
    .map((group) => `@${group.handle}`);
  const role = person.role === "member" && mine.length > 0 ? [] : [roles[person.role]];
  return [...role, ...mine, ...(person.active ? [] : ["deactivated"])].join(" · ");
}

/** Everybody one can be on this page: apps don't type. */
export function humansIn(people: readonly SeenPerson[]): SeenPerson[] {
  return people.filter((person) => person.role !== "bot");
}
