import * as fc from "fast-check";
import { hostileTexts } from "../messages/hostile.ts";
import { anyCharacter } from "../support/any-character.ts";

/** Texts that somebody wrote to break something, as small as they go. */
const oddTexts = [
  "",
  " ",
  "\u0000",
  "\u202eevil\u202c",
  "\u200b\u2066x\u2069\ufeff",
  "'",
  '"',
  "“",
  "\"'\"'\"'",
  "``````",
  "--",
  "—",
  "---yes",
  "--yes",
  "--force",
  "--__proto__",
  "--__proto__=polluted",
  "--constructor=polluted",
  "--to-string=x",
  "__proto__",
  "constructor",
  "prototype",
  "hasOwnProperty",
  "toString",
  "*",
  "../projects/1",
  "a%2fb",
  "?x=1",
  "#",
  "$(reboot)",
  "; rm -rf /",
  "1e9",
  "-1",
  "NaN",
  "0x10",
  "٣",
  "1,5",
  "＋１",
  "&lt;!channel&gt;",
  "<https://evil.example|web-1>",
  "<@U0ADA|ada>",
  "👩‍👩‍👧",
  "\ud800",
  "İ",
  "ß",
];

/** Any short text: of any characters, or one that was made to break something. */
export const anyWord: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(...oddTexts),
  fc.constantFrom(...hostileTexts.filter((text) => text.length < 300)),
  fc.string({ unit: anyCharacter, maxLength: 40 }),
  fc.string({ unit: "grapheme", maxLength: 40 }),
  fc.string({ maxLength: 40 }),
);

/** Texts of up to 10,000 characters in which one piece comes again and again: what makes a bad pattern slow. */
export const longText: fc.Arbitrary<string> = fc
  .tuple(
    fc.constantFrom(
      "<",
      "<a|",
      "<@U1|",
      '"',
      '--a="',
      "`",
      "-",
      "- ",
      "&amp;",
      "a ",
      "\\",
      "[",
      "(",
      "*",
      "\u202e",
      "—",
      "'\"",
      "://",
      "__proto__.",
    ),
    fc.oneof(
      { weight: 4, arbitrary: fc.integer({ min: 1, max: 400 }) },
      { weight: 1, arbitrary: fc.integer({ min: 400, max: 10_000 }) },
    ),
    fc.constantFrom("", "!", '"', ">", "x"),
  )
  .map(([piece, times, end]) => piece.repeat(times).slice(0, 10_000) + end);

/** JSON of any form, with names that reach for prototypes. */
export const anyJson: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 6, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
  {
    weight: 3,
    arbitrary: fc
      .tuple(
        fc.constantFrom("__proto__", "constructor", "prototype", "polluted"),
        fc.jsonValue({ maxDepth: 2 }),
      )
      .map(([key, value]): unknown =>
        JSON.parse(`{"${key}":{"polluted":true,"x":${JSON.stringify(value)}}}`),
      ),
  },
);
