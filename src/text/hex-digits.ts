/**
 * The digits of bytes in hex, in lower case, as tools write them: with `0x` or `\x` before them, and
 * with spaces, line ends, colons, dashes, commas, or braces around them. Undefined for any other
 * text.
 */
export function hexDigits(text: string): string | undefined {
  const digits = text.replaceAll(/\b0x|\\x|[\s:,;{}[\]-]/gi, "").toLowerCase();
  return /^[0-9a-f]+$/.test(digits) && digits.length % 2 === 0 ? digits : undefined;
}
