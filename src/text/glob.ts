export function isGlob(words: string): boolean {
  return words.includes("*") || words.includes("?");
}

/**
 * Whether the whole text matches, case included: `*` is any run of characters, `?` exactly one. No regular expression is
 * built from user input: the work is at most glob length × text length.
 */
export function matchesGlob(glob: string, text: string): boolean {
  return compileGlob(glob)(text);
}

/** The same, for many texts. */
export function compileGlob(glob: string): (text: string) => boolean {
  if (!isGlob(glob)) return (text) => text === glob;
  const pattern = Array.from(glob.replaceAll(/\*+/g, "*"));
  const head = glob.slice(0, glob.search(/[*?]/));
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

/** `?` matches an emoji, which is two code units. */
function characterWidth(text: string, at: number): 1 | 2 {
  const unit = text.charCodeAt(at);
  const isPair = unit >= 0xd800 && unit < 0xdc00 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00;
  return isPair ? 2 : 1;
}

/** A name for comparison without case: `Web-1` and `web-1` are equal, and so are both encodings of é. */
export function fold(name: string): string {
  return name.normalize("NFC").toLowerCase();
}
