/** Replaces the user IDs of known people with their names, because people don't read IDs. */
export function withNames(text: string, nameOf: (id: string) => string | undefined): string {
  return text.replaceAll(/\b[UW][A-Z0-9]{2,}\b/g, (id) => nameOf(id) ?? id);
}
