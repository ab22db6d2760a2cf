import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { UserError } from "../../src/errors.ts";
import { tokenize } from "../../src/registry/invocation.ts";

const words = (text: string) => tokenize(text).map((word) => word.text);

describe("words of a command", () => {
  it.each([
    ["vm restart web-1", ["vm", "restart", "web-1"]],
    ["  vm \t restart\n web-1  ", ["vm", "restart", "web-1"]],
    ["vm\u00a0restart\u202fweb-1", ["vm", "restart", "web-1"]],
    ["", []],
  ])("stand between spaces of any kind: %j", (text, expected) => {
    expect(words(text)).toEqual(expected);
  });

  it.each([
    '"two words"',
    "'two words'",
    "“two words”",
    "„two words“",
    "„two words”",
    "‘two words’",
    "‚two words‘",
    "”two words”",
    "«two words»",
  ])("stay together in quotes: %s", (quoted) => {
    expect(words(`vm show ${quoted}`)).toEqual(["vm", "show", "two words"]);
    expect(words(`vm list --project=${quoted} --raw`)).toEqual([
      "vm",
      "list",
      "--project=two words",
      "--raw",
    ]);
  });

  it("keep apostrophes and quotes inside a word as letters", () => {
    expect(words("freeze it's broken, the dogs' food, 5\" disk, ann’s")).toEqual(
      "freeze it's broken, the dogs' food, 5\" disk, ann’s".split(" "),
    );
  });

  it.each(["—status", "–status", "-status", "−−status", "--status", "——status"])(
    "are flags however a phone wrote the dashes: %s",
    (flag) => {
      expect(words(`vm list ${flag} ERROR`)).toEqual(["vm", "list", "--status", "ERROR"]);
      expect(words(`vm list ${flag}=ERROR`)).toEqual(["vm", "list", "--status=ERROR"]);
    },
  );

  it("leave numbers and lone dashes alone", () => {
    expect(words("a - b — c -1 --2")).toEqual(["a", "-", "b", "—", "c", "-1", "--2"]);
  });

  it("are known as quoted, so that quoted dashes are text", () => {
    expect(tokenize('"--yes" --yes')).toEqual([
      { text: "--yes", isQuoted: true },
      { text: "--yes", isQuoted: false },
    ]);
    expect(words('a ""')).toEqual(["a", ""]);
  });

  it("come out of backticks, Slack's escapes and automatic links as they were typed", () => {
    expect(words("`vm show web-1`")).toEqual(["vm", "show", "web-1"]);
    expect(words("`web-1` ```db-1``` `")).toEqual(["web-1", "db-1"]);
    expect(words("a&amp;b &lt;c&gt; &amp;lt;")).toEqual(["a&b", "<c>", "&lt;"]);
    expect(words("<http://web-1.example|web-1.example> <https://x.example/a>")).toEqual([
      "web-1.example",
      "https://x.example/a",
    ]);
    expect(words("<@U123|ann> <@U123> <#C1|ops> <mailto:a@b.c|a@b.c>")).toEqual([
      "@ann",
      "@U123",
      "#ops",
      "a@b.c",
    ]);
    expect(words("<!channel> <script>")).toEqual(["<!channel>", "<script>"]);
  });

  it("lose what can't be seen", () => {
    expect(words("web\u200b-1 \u202eweb\u2060-2\u202c")).toEqual(["web-1", "web-2"]);
  });

  it.each(['vm show "web-1', "vm show 'web 1", "vm show “web-1", 'vm list --project="web'])(
    "are refused with a sentence while a quote is open: %s",
    (text) => {
      expect(() => tokenize(text)).toThrow("A quote is not closed.");
    },
  );

  it("are at most 4,000 characters", () => {
    expect(words("x".repeat(4000))).toHaveLength(1);
    expect(() => tokenize("x".repeat(4001))).toThrow(
      "That is too long: the limit is 4,000 characters.",
    );
  });

  it("come back from quotes whatever they hold", () => {
    const text = fc
      .string({ unit: "grapheme", maxLength: 40 })
      .filter((word) => word === tokenizable(word));
    fc.assert(
      fc.property(fc.array(text, { maxLength: 8 }), (all) => {
        expect(words(all.map((word) => `"${word}"`).join(" "))).toEqual(all);
      }),
    );
  });

  it("are found in any text without anything but a UserError", () => {
    const nasty = ["<", ">", "|", "&", "&lt;", '"', "“", "—", "`", " ", "a", "<@", "\\"];
    const read = (text: string) => {
      try {
        tokenize(text);
      } catch (error) {
        expect(error).toBeInstanceOf(UserError);
      }
    };
    for (const part of nasty) read(part.repeat(4000 / part.length));
    const anyCharacter = fc.integer({ min: 0, max: 0x10_ff_ff });
    const characters = fc.array(anyCharacter, { maxLength: 400, size: "max" });
    const some = fc.array(fc.constantFrom(...nasty), { maxLength: 200, size: "max" });
    fc.assert(
      fc.property(
        fc.oneof(
          // fc.string takes fifty milliseconds for one so long
          characters.map((points) => String.fromCodePoint(...points)),
          some.map((parts) => parts.join("")),
        ),
        read,
      ),
    );
  });
});

/** Without what is not kept within straight quotes: the quote itself, Slack's markup, and what can't be seen. */
function tokenizable(text: string): string {
  return text
    .replaceAll(/["<>&]/g, "")
    .replaceAll(/[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069]/g, "");
}
