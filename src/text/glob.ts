import { plainForm } from "./fold.ts";

const wildcard = /[*?]/;

/** Wide stars and question marks count, because names are compared in their plain form. */
export function isGlob(words: string): boolean {
  return wildcard.test(plainForm(words));
}

/**
 * Whether the whole text matches, case included. `*` stands for any run of characters, `?` for
 * exactly one. No regular expression is built from user input; the work is at most glob length ×
 * text length.
 */
export function matchesGlob(glob: string, text: string): boolean {
  return compileGlob(glob)(text);
}

/** Prepares a glob for matching many texts, as `matchesGlob` does for one. */
export function compileGlob(glob: string): (text: string) => boolean {
  if (!wildcard.test(glob)) return (text) => text === glob;
  const pattern = Array.from(glob.replaceAll(/\*+/g, "*"));
  const head = glob.slice(0, glob.search(wildcard));
  return (text) => text.startsWith(head) && matches(pattern, text);
}

/** Backtracks to the last star only: what that one can't reach, earlier ones can't either. */
function matches(pattern: readonly string[], text: string): boolean {
  let at = 0;
  let next = 0;
  let star = -1;
  let starAt = 0;
  while (at < text.length) {
    const wanted = pattern[next];
    const width = characterWidth(text, at);
    if (wanted === "*") {
      star = next;
      starAt = at;
      next += 1;
    } else if (wanted !== undefined && (wanted === "?" || wanted === text.slice(at, at + width))) {
      at += width;
      next += 1;
    } else if (star !== -1) {
      starAt += characterWidth(text, starAt);
      at = starAt;
      next = star + 1;
    } else {
      return false;
    }
  }
  while (pattern[next] === "*") next += 1;
  return next === pattern.length;
}

/**
 * Whether every text that `other` matches is matched by `wider`, too, case included. The `*` of
 * `other` stands for any text, so matching it as a plain character never finds more than `wider`
 * covers. With a `?` in `wider` this doesn't hold, because the `?` could match the `*`; such pairs
 * count as not covered.
 */
export function coversGlob(wider: string, other: string): boolean {
  return matchesGlob(wider, other) && !(wider.includes("?") && other.includes("*"));
}

/** Whether some text matches both globs, case included. */
export function globsOverlap(first: string, other: string): boolean {
  const [head, tail] = [first, other].map((glob) => glob.split(/[*?]/, 1)[0] ?? "");
  if (!head?.startsWith(tail ?? "") && !tail?.startsWith(head ?? "")) return false;
  const [a, b] = [first, other].map((glob) => Array.from(glob.replaceAll(/\*+/g, "*")));
  if (!a || !b) return false;
  // reached[j] is whether a text exists that both a[..i] and b[..j] match.
  let reached = b.map(() => false);
  for (let i = 0; i <= a.length; i += 1) {
    const next: boolean[] = [];
    for (let j = 0; j <= b.length; j += 1) {
      const [left, right] = [a[i - 1], b[j - 1]];
      const isSame = left === "?" || right === "?" || left === right;
      next.push(
        (i === 0 && j === 0) ||
          (left === "*" && (reached[j] === true || next[j - 1] === true)) ||
          (right === "*" && (next[j - 1] === true || reached[j] === true)) ||
          (left !== "*" && right !== "*" && isSame && i > 0 && j > 0 && reached[j - 1] === true),
      );
    }
    reached = next;
  }
  return reached[b.length] === true;
}

/** `?` matches a whole emoji, which is two code units. */
function characterWidth(text: string, at: number): 1 | 2 {
  const unit = text.charCodeAt(at);
  const isPair = unit >= 0xd800 && unit < 0xdc00 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00;
  return isPair ? 2 : 1;
}
