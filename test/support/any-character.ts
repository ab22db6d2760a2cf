import * as fc from "fast-check";

/**
 * Any character of Unicode, as fast-check's unit `binary`. That one builds a table of all 1.1 million characters when it is first used, which
 * takes a second of a processor in each process.
 */
export const anyCharacter: fc.Arbitrary<string> = fc
  .oneof(
    fc.integer({ min: 0x20, max: 0x7e }),
    fc.integer({ min: 0, max: 0xd7ff }),
    fc.integer({ min: 0xe000, max: 0x10ffff }),
  )
  .map((codePoint) => String.fromCodePoint(codePoint));
