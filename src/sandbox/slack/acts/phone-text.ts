/** What a phone's keyboard makes of plain typing: curly quotes, and a dash for two hyphens. */
export function phoneText(typed: string): string {
  return typed
    .replaceAll(/(^|[\s([{=])"/g, "$1“")
    .replaceAll('"', "”")
    .replaceAll(/(^|[\s([{=])'/g, "$1‘")
    .replaceAll("'", "’")
    .replaceAll("--", "—");
}
