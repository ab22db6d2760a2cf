import { describe, expect, it } from "vitest";
import {
  button,
  buttons,
  confirmation,
  context,
  divider,
  fields,
  fitsMenu,
  header,
  limits,
  message,
  type Message,
  plainText,
  readable,
  section,
  sentence,
  table,
  Markdown,
  md,
  mention,
  name,
  when,
} from "../../src/messages/message.ts";
import { complaintsOf } from "../commands/shown-text.ts";
import { controlsIn, hostileTexts } from "./hostile.ts";

/** Every builder there is, with this text in every place that takes one. */
function everything(text: string): Message {
  const spec = { label: text, action: "run:vm.show", value: text };
  return message(
    text,
    header(text),
    section(md`${text} ${name(text)}`),
    fields([
      [text, md`${text}`],
      [text, name(text)],
    ]),
    context(md`${text}`),
    divider,
    table(text, [text, text], [[text, text], [text]]).block,
    buttons([
      spec,
      { ...spec, action: "run:vm.start", confirm: { title: text, text, confirm: text } },
      { ...spec, action: "run:vm.stop" },
    ]),
    sentence(md`${text}`).blocks,
  );
}

describe("a message", () => {
  it("is something that Slack takes, and inert, whatever stands in it: 200 hostile texts in every place", () => {
    for (const text of hostileTexts) {
      const made = everything(text);
      expect(complaintsOf(made)).toEqual([]);
      expect(controlsIn(made)).toEqual([]);
    }
  });

  it.each([
    "",
    " ",
    "\u200b",
    "🟢".repeat(3000),
    "x".repeat(10_000),
    "&".repeat(5000),
    "\n".repeat(99),
  ])("is taken by Slack when a text is odd: %j", (text) =>
    expect(complaintsOf(everything(text))).toEqual([]),
  );

  it("keeps Slack's limits, and says that something was left out", () => {
    const many = Array.from({ length: 80 }, (_, n) => section(md`${n}`));
    const made = message("many", many);
    expect(made.blocks).toHaveLength(limits.blocks);
    expect(JSON.stringify(made.blocks.at(-1))).toContain("31 more not shown");
    expect(complaintsOf(made)).toEqual([]);
    const wide = table(
      "wide",
      Array.from({ length: 20 }, (_, n) => `column ${n}`),
      Array.from({ length: 400 }, () => Array.from({ length: 20 }, () => "y".repeat(100))),
    );
    expect(complaintsOf(message("wide", wide.block))).toEqual([]);
    expect(
      complaintsOf(
        message(
          "rows",
          table(
            "rows",
            ["a"],
            Array.from({ length: 500 }, () => ["b"]),
          ).block,
        ),
      ),
    ).toEqual([]);
  });

  it("has no table without rows, and sorts a column by number where all of it are numbers", () => {
    expect(table("none", ["a"], [])).toEqual({ block: undefined, shown: 0 });
    const { block, shown } = table(
      "VMs",
      ["Name", "CPU"],
      [
        ["7", "16"],
        ["web-1", "2"],
      ],
    );
    expect(shown).toBe(2);
    expect(block?.rows.map((row) => row.map(({ type }) => type))).toEqual([
      ["raw_text", "raw_text"],
      ["raw_text", "raw_number"],
      ["raw_text", "raw_number"],
    ]);
  });

  it("mentions only those whom our own builders mention", () => {
    const made = sentence(md`${mention("U0OLIVIA")} ${"<@U0VICTIM>"} at ${when(0)}`);
    expect(controlsIn(made)).toEqual(["<@U0OLIVIA>", "<@U0OLIVIA>"]);
    expect(made.text).toMatch(/^<@U0OLIVIA> &lt;@.?U0VICTIM&gt; at 00:00:00 UTC$/);
  });

  it("is read aloud in words: no stars, no dates in brackets", () => {
    expect(readable(md`*Restart* ${name("web-1")} at ${when(0)}`).value).toBe(
      "Restart web-1 at 00:00:00 UTC",
    );
  });

  it("never loads a picture of a link, because nothing in it is one", () => {
    const made = sentence(md`see ${"https://evil.example/x"}`);
    expect(JSON.stringify(made.blocks)).toContain('"verbatim":true');
  });
});

describe("a button", () => {
  it("has a value that fits, and a confirm dialog within its limits", () => {
    const made = button({ label: "x".repeat(200), action: "a", value: "v".repeat(5000) });
    expect(made.value).toHaveLength(2000);
    expect(made.text.text.length).toBeLessThanOrEqual(75);
    const asked = confirmation({
      title: "t".repeat(300),
      text: "x".repeat(900),
      confirm: "c".repeat(90),
    });
    expect(asked).toMatchObject({ deny: { text: "Cancel" } });
    expect(
      complaintsOf(
        message(
          "m",
          buttons([
            {
              label: "a",
              action: "b",
              value: "c",
              confirm: { title: "t", text: "x".repeat(900), confirm: "y" },
            },
          ]),
        ),
      ),
    ).toEqual([]);
  });

  it("that asks stands in no menu: Slack asks for all of its options or for none", () => {
    const look = { label: "Show", action: "run:vm.show", value: "{}" };
    const confirm = { title: "t", text: "x", confirm: "y" };
    expect(fitsMenu([look, look])).toBe(true);
    expect(fitsMenu([look, { ...look, confirm }])).toBe(false);
  });

  it("rows are left out when there are none", () => {
    expect(buttons([])).toEqual([]);
    expect(plainText("").text).toBe(" ");
    expect(new Markdown("x").toString()).toBe("x");
  });
});
