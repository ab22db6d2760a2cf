/**
 * A sign with which a formula begins, and what may stand before it. Full-width signs count in some
 * locales.
 */
const formula = /([\s"',;|]*)([=+\-@＝＋－＠]?)/gu;

/**
 * Puts an apostrophe before text that a spreadsheet would run as a formula
 * (https://owasp.org/www-community/attacks/CSV_Injection). It is needed at the start of a cell, and
 * after every character that separates values in some locale: where that is a semicolon, our quotes
 * end after the first cell.
 */
function disarmed(text: string): string {
  return text.replaceAll(formula, (all, before: string, sign: string, offset: number) => {
    if (sign === "") return offset === 0 && /^[\t\r]/.test(before) ? `'${all}` : all;
    const from = (/^.*[,;|\t\r\n]/s.exec(before) ?? [""])[0].length;
    if (from === 0 && offset > 0) return all;
    const first = offset === 0 && from > 0 ? "'" : "";
    return `${first}${before.slice(0, from)}'${before.slice(from)}${sign}`;
  });
}

export function csv(rows: readonly (readonly string[])[]): string {
  const cell = (text: string) => `"${disarmed(text).replaceAll('"', '""')}"`;
  return `${rows.map((row) => row.map(cell).join(",")).join("\n")}\n`;
}
