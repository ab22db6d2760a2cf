/** Makes the first letter small, as for a word within a sentence: `Restarted` becomes `restarted`. */
export const lowerFirst = (text: string): string =>
  `${text.slice(0, 1).toLowerCase()}${text.slice(1)}`;

/** Makes the first letter a capital, as at the beginning of a sentence. */
export const upperFirst = (text: string): string =>
  `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
