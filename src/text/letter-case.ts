/** `Restarted` is `restarted` within a sentence. */
export const lowerFirst = (text: string): string =>
  `${text.slice(0, 1).toLowerCase()}${text.slice(1)}`;

/** The same at the beginning of a sentence. */
export const upperFirst = (text: string): string =>
  `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
