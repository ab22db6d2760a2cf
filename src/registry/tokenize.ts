import { UserError } from "../errors.ts";

/** A word as it was written. One that was quoted is never a flag: `"--yes"` is text. */
export interface Word {
  text: string;
  isQuoted: boolean;
}

const longest = 4000;

/** What phones and word processors make of quotes: each with those that may close it. */
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

/** Not to be seen, and not part of any name: zero-width spaces, joiners, marks of direction. */
const unseen = /[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069]/g;

/** A hyphen, and what phones make of one or two of them. */
const dash = "[-‐‑–—−]";
const flagStart = new RegExp(`^${dash}{1,3}(?=\\p{L})`, "u");
const flagBeforeQuote = new RegExp(`^${dash}{1,3}\\p{L}[\\p{L}\\p{N}-]*=$`, "u");

/**
 * Command text → words. Quotes of every kind keep words together, `—status` and `-status` are taken for `--status`,
 * Slack's escapes and automatic links become what was typed. A quote inside a word is a letter (it's). Linear in time.
 * Throws UserError for an unclosed quote and for more than 4,000 characters.
 */
export function tokenize(text: string): Word[] {
  if (text.length > longest) {
    throw new UserError(
      `That is too long: at most ${longest} characters.`,
      "Several shorter commands do the same.",
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
      // `--name="two words"` stays a flag: only a word that begins with a quote is taken as it is
      if (word === "") isQuoted = true;
    } else word += char;
  }
  if (closers !== undefined) {
    throw new UserError(
      "A quote is not closed.",
      `Close it with ${closers.slice(-1)}, or leave quotes away.`,
    );
  }
  end();
  return words;
}

/** `—status`, `–status`, `-status` → `--status`; a lone dash and numbers stay. */
function flagOf(word: string): string {
  return word.replace(flagStart, "--");
}

/** `web-1` in backticks, as one copies it from a message. */
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
