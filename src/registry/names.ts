import type { Argument } from "./arguments.ts";
import type { Word } from "./tokenize.ts";

/**
 * Names as people write them in a sentence: `web-2, web-1 and db-1, please.` This is only for words without quotes and
 * outside flags: in quotes a word is the name itself, whatever it holds.
 */
export function namesIn(words: readonly Word[]): string[] {
  return words.flatMap(({ text, isQuoted }) => {
    if (isQuoted) return text;
    if (/^(and|&)$/i.test(text)) return [];
    if (!text.includes(",")) return bare(text);
    return text.split(",").flatMap((part) => (part === "" ? [] : [bare(part)]));
  });
}

/** Takes the words of one target, or of several with commas between them. */
export function nameIn({ isSeveral }: Pick<Argument, "isSeveral">, waiting: Word[]): string {
  const first = waiting.shift();
  if (first === undefined || first.isQuoted) return first?.text ?? "";
  // Glob characters are part of a name that can mean several
  if (!isSeveral) return bare(first.text, ".,!:?`");
  const words = [first];
  while (waiting[0] && !waiting[0].isQuoted && isOpen(words.at(-1), waiting[0]))
    words.push(...waiting.splice(0, 1));
  return namesIn(words).join(",") || first.text;
}

/** `web-1, web-2` and `web-1 ,web-2` go on. */
function isOpen(last: Word | undefined, next: Word): boolean {
  return last?.text.endsWith(",") === true || next.text.startsWith(",");
}

/** Words that ask nothing. A VM with such a name is named in quotes. */
export function isPolite({ text, isQuoted }: Word): boolean {
  return !isQuoted && text.length < 12 && /^(please|pls|plz|thanks|thx)[.,!]*$/i.test(text);
}

/** `db-1.` and `http://db-1/`, as Slack links a pasted name, mean `db-1`. */
function bare(text: string, signs = ".,!:`"): string {
  const host = /^https?:\/\/([^/?#]+)\/?$/i.exec(text)?.[1] ?? text;
  let to = host.length;
  while (to > 0 && signs.includes(host.charAt(to - 1))) to -= 1;
  return to === 0 ? text : host.slice(0, to);
}
