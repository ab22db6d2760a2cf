/** Known people by their names: people don't read user IDs. */
export function withNames(text: string, nameOf: (id: string) => string | undefined): string {
  return text.replaceAll(/\b[UW][A-Z0-9]{2,}\b/g, (id) => nameOf(id) ?? id);
}
