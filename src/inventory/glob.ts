/** Anything a glob can hold that a plain name isn't. */
export function isGlob(words: string): boolean {
  return words.includes("*") || words.includes("?");
}

/**
 * Whether the whole text matches: `*` is any run of characters, `?` exactly one, everything else itself, case included.
 * No regular expression is built from what a person typed: the work is at most glob length × text length.
 */
export function matchesGlob(glob: string, text: string): boolean {
  return compileGlob(glob)(text);
}

/** The same, for many texts. */
export function compileGlob(glob: string): (text: string) => boolean {
  const pattern = Array.from(glob.replaceAll(/\*+/g, "*"));
  const plainHead = leadingText(glob);
  if (plainHead === glob) return (text) => text === glob;
  return (text) => text.startsWith(plainHead) && matches(pattern, text);
}

/** What every match begins with. */
export function leadingText(glob: string): string {
  const end = glob.search(/[*?]/);
  return end === -1 ? glob : glob.slice(0, end);
}

/**
 * Walks both once; at a mismatch it goes back to the last star only, which takes one character more. Earlier stars need
 * no second try: what the last one can't reach, they can't either.
 */
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

/** An emoji is one character to the person who types `?` for it. */
function characterWidth(text: string, at: number): 1 | 2 {
  const unit = text.charCodeAt(at);
  const isPair = unit >= 0xd800 && unit < 0xdc00 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00;
  return isPair ? 2 : 1;
}
