/** Created once: creating one takes far longer than comparing. */
const collator = new Intl.Collator("en-US", { numeric: true });

/**
 * The order in which people expect names: `edge-2` before `edge-10`, whatever the case. Different
 * names are never equal, so that pages of a list never overlap.
 */
export const compareNames = (a: string, b: string): number =>
  collator.compare(a, b) || (a < b ? -1 : a > b ? 1 : 0);
