/** The message of anything thrown, on one line. */
export const messageOf = (error: unknown): string =>
  (error instanceof Error ? error.message || error.name : String(error)).replaceAll(/\s+/g, " ");
