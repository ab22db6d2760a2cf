/** What moves a cursor, colors, hides, or reorders text: C0 and C1 controls, bidi controls, invisible characters. */
const unseen =
  /[\p{Cc}\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/gu;

const shown = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;

/**
 * Text for a terminal, with its line breaks and tabs: what a terminal would obey is shown as `\u001b`, which within JSON still
 * means the same.
 */
export function printable(text: string): string {
  return text.replaceAll(unseen, (one) => (one === "\n" || one === "\t" ? one : shown(one)));
}

/** The same for what must stay on its line, so that no field passes for a line of its own. */
export function printableLine(text: string): string {
  return text.replaceAll(unseen, shown);
}
