import { UserError } from "../errors.ts";

/** A quoted word is never a flag: `"--yes"` is text. */
export interface Word {
  text: string;
  isQuoted: boolean;
}

const longest = 4000;

/** Quotes, also those of phones and word processors, with the quotes that close them. */
const openers: Readonly<Record<string, string>> = {
  '"': '"',
  "'": "'",
  "“": "”",
  "„": "“”",
  "«": "»",
  "‘": "’",
  "‚": "‘’",
  "”": "”",
  "’": "’",
};

/** Invisible and in no name: zero-width spaces, joiners, direction marks. */
const unseen = /[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069]/g;

/** A hyphen, and what phones replace one or two with. */
const dash = "[-‐‑–—−]";
const flagStart = new RegExp(`^${dash}{1,3}(?=\\p{L})`, "u");
const flagBeforeQuote = new RegExp(`^${dash}{1,3}\\p{L}[\\p{L}\\p{N}-]*=$`, "u");

/**
 * Command text → words. Quotes of every kind group words, but inside a word they are letters (it's); `—status` and
 * `-status` mean `--status`; Slack's escapes and links become what was typed. Linear in time. Throws UserError.
 */
export function tokenize(text: string): Word[] {
  if (text.length > longest) {
    throw new UserError(
      `That is too long: the limit is ${longest.toLocaleString("en-US")} characters.`,
      "Split it into shorter commands.",
    );
  }
  const clean = unescape(unlink(text)).replaceAll(unseen, "");
  const words: Word[] = [];
  let word = "";
  let closers: string | undefined;
  let isQuoted = false;
  const end = () => {
    const written = isQuoted ? word : flagOf(unticked(word));
    if (written !== "" || isQuoted) words.push({ text: written, isQuoted });
    word = "";
    isQuoted = false;
  };
  for (const char of clean) {
    if (closers !== undefined) {
      if (closers.includes(char)) closers = undefined;
      else word += char;
    } else if (/\s/.test(char)) end();
    else if (openers[char] !== undefined && (word === "" || flagBeforeQuote.test(word))) {
      closers = openers[char];
      // `--name="two words"` stays a flag
      if (word === "") isQuoted = true;
    } else word += char;
  }
  if (closers !== undefined) {
    throw new UserError(
      "A quote is not closed.",
      `Close it with ${closers.slice(-1)}, or omit the quotes.`,
    );
  }
  end();
  return words;
}

/** `—status`, `–status`, `-status` → `--status`; a lone dash and numbers stay. */
function flagOf(word: string): string {
  return word.replace(flagStart, "--");
}

/** `web-1` in backticks, as copied from a message. */
function unticked(word: string): string {
  let [from, to] = [0, word.length];
  while (from < to && word[from] === "`") from++;
  while (to > from && word[to - 1] === "`") to--;
  return word.slice(from, to);
}

/** `<http://web-1.example|web-1.example>` → `web-1.example`, `<@U123|ann>` → `@ann`, `<#C1|ops>` → `#ops`. */
function unlink(text: string): string {
  return text.replaceAll(
    /<([^<>\s|]{1,500})(?:\|([^<>]{0,500}))?>/g,
    (whole, target: string, label?: string) => {
      if (/^[@#]/.test(target)) return label ? target.slice(0, 1) + label : target;
      if (/^(https?|mailto|tel):/.test(target)) return label || target;
      return whole;
    },
  );
}

function unescape(text: string): string {
  return text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
}
