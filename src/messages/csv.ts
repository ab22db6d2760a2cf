/**
 * Rows for a spreadsheet. What begins like a formula gets an apostrophe, so that a name can't become one
 * (https://owasp.org/www-community/attacks/CSV_Injection).
 */
export function csv(rows: readonly (readonly string[])[]): string {
  const cell = (text: string) => {
    const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return `${rows.map((row) => row.map(cell).join(",")).join("\n")}\n`;
}
