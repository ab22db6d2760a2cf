/** What keyboards, phones, and word processors put in place of a hyphen. */
const hyphens = /[\u02d7\u2010-\u2013\u2043\u2212]/g;

/** A text of ASCII alone has no other form. Most names are like that. */
const isAscii = /^[\0-\x7f]*$/;

/**
 * A text as a plain keyboard writes it: wide letters and signs become ordinary ones (NFKC), and all
 * hyphens the one in `web-1`.
 */
export function plainForm(text: string): string {
  return isAscii.test(text) ? text : text.normalize("NFKC").replaceAll(hyphens, "-");
}

/**
 * A name prepared for comparison: `Web-1`, `web‑1` with a phone's hyphen, and `ｗｅｂ－１` become
 * `web-1`, and both encodings of é are one. Whatever compares typed names with known ones uses this.
 */
export function fold(name: string): string {
  return plainForm(name).toLowerCase();
}
