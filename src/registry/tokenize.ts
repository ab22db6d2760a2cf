import { UserError } from "../errors.ts";

const longest = 4000;

/** What phones and word processors make of quotes and dashes, and Slack of `&`, `<` and `>`. */
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

/**
 * Command text → words. Quotes of every kind keep words together, `—status` and `-status` are taken for `--status`,
 * Slack's escapes and automatic links become what was typed. A quote inside a word is a letter (it's). Linear in time.
 * Throws UserError for an unclosed quote and for more than 4,000 characters.
 */
export function tokenize(text: string): string[] {
  if (text.length > longest) {
    throw new UserError(`That is too long: at most ${longest} characters.`);
  }
  const clean = unescape(unlink(text));
  const words: string[] = [];
  let word = "";
  let closers: string | undefined;
  let isQuoted = false;
  const end = () => {
    if (word !== "" || isQuoted) words.push(isQuoted ? word : flagOf(unticked(word)));
    word = "";
    isQuoted = false;
  };
  for (const char of clean) {
    if (closers !== undefined) {
      if (closers.includes(char)) closers = undefined;
      else word += char;
    } else if (/\s/.test(char)) end();
    else if (openers[char] !== undefined && (word === "" || isFlagValue(word))) {
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

const isFlagValue = (word: string) => /^[-–—]+[\p{L}][\p{L}\p{N}-]*=$/u.test(word);

/** `—status`, `–status`, `-status` → `--status`; a lone dash and numbers stay. */
function flagOf(word: string): string {
  return word.replace(/^[-–—]{1,3}(?=\p{L})/u, "--");
}

/** `web-1` in backticks, as one copies it from a message. */
function unticked(word: string): string {
  return word.length > 2 && word.startsWith("`") && word.endsWith("`") ? word.slice(1, -1) : word;
}

/** `<http://web-1.example|web-1.example>` → `web-1.example`, `<@U123|ann>` → `@ann`, `<#C1|ops>` → `#ops`. */
function unlink(text: string): string {
  return text.replaceAll(
    /<([^<>\s|]{1,500})(?:\|([^<>]{0,500}))?>/g,
    (whole, target: string, label?: string) => {
      if (/^[@#]/.test(target)) return label ? target.slice(0, 1) + label : target;
      if (/^(https?|mailto):/.test(target)) return label ?? target;
      return whole;
    },
  );
}

function unescape(text: string): string {
  return text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
}
