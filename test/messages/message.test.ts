import { describe, expect, it } from "vitest";
import type { Message } from "../../src/messages/blocks.ts";
import { button, confirmation } from "../../src/messages/button-elements.ts";
import { fitsMenu } from "../../src/messages/buttons.ts";
import { fitting, lineList, list, card, rowsOverTable, sentence } from "../../src/messages/card.ts";
import { asPost } from "../../src/messages/notification.ts";
import { howToOpen } from "../../src/messages/channel-errors.ts";
import { limits, weightOf } from "../../src/messages/limits.ts";
import {
  channelLink,
  readable,
  Markdown,
  md,
  mention,
  name,
  when,
} from "../../src/messages/markdown.ts";
import { headingOf, pairsOf, paragraph, rule, small, waysRow } from "../../src/messages/parts.ts";
import { tableBlock } from "../../src/messages/drawn-blocks.ts";
import { table } from "../../src/messages/table.ts";
import { plainText } from "../../src/messages/text-objects.ts";
import { complaintsOf } from "../commands/shown-text.ts";
import { controlsIn, hostileTexts } from "./hostile.ts";

const again = { label: "Again", action: "run:vm.list", value: "{}" };

/** Every builder there is, with this text in every place that takes one. */
function everything(text: string): Message {
  const spec = { label: text, action: "run:vm.show", value: text };
  return card({
    push: md`${text}`,
    body: [
      headingOf(text),
      paragraph(md`${text} ${name(text)}`),
      pairsOf([
        [text, md`${text}`],
        [text, name(text)],
      ]),
      small(md`${text}`),
      rule,
      table(text, [text, text], [[text, text], [text]]).part,
      waysRow([
        spec,
        { ...spec, action: "run:vm.start", confirm: { title: text, text, confirm: text } },
        { ...spec, action: "run:vm.stop" },
      ]),
      sentence(md`${text}`),
    ],
  });
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
    const many = Array.from({ length: 80 }, (_, n) => paragraph(md`${n}`));
    const made = card({ push: md`many`, body: [many] });
    expect(made.blocks).toHaveLength(limits.blocks);
    expect(JSON.stringify(made.blocks.at(-1))).toContain("31 more not shown");
    expect(complaintsOf(made)).toEqual([]);
    const wide = table(
      "wide",
      Array.from({ length: 20 }, (_, n) => `column ${n}`),
      Array.from({ length: 400 }, () => Array.from({ length: 20 }, () => "y".repeat(100))),
    );
    expect(complaintsOf(card({ push: md`wide`, body: [wide.part] }))).toEqual([]);
    expect(
      complaintsOf(
        card({
          push: md`rows`,
          body: [
            table(
              "rows",
              ["a"],
              Array.from({ length: 500 }, () => ["b"]),
            ).part,
          ],
        }),
      ),
    ).toEqual([]);
  });

  it("weighs no more than Slack takes: a list is cut to the room the rest leaves, and counts what is left", () => {
    const rows = Array.from({ length: 30 }, (_, n) => paragraph(md`row ${n} ${"x".repeat(900)}`));
    const shownIn = (made: Message) =>
      made.blocks.filter((block) => JSON.stringify(block).includes("row ")).length;
    const made = card({
      push: md`many`,
      body: [paragraph(md`head`), list(rows, { beyond: 12 }), waysRow([again])],
    });
    expect(complaintsOf(made)).toEqual([]);
    const shown = shownIn(made);
    expect(shown).toBeGreaterThan(5);
    expect(JSON.stringify(made.blocks.at(-2))).toContain(`… ${42 - shown} more`);
    expect(made.blocks.at(-1)?.type).toBe("actions");
    // What is longer beside it leaves it less, and a note added later fits too
    const less = card({ push: md`many`, body: [paragraph(md`${"y".repeat(2900)}`), list(rows)] });
    expect(shownIn(less)).toBeLessThan(shown);
    const noted = card({ push: md`noted`, body: [made, small(md`${"z".repeat(500)}`)] });
    expect(noted.blocks).toHaveLength(made.blocks.length + 1);
    // Lines and a table below rows
    const lines = card({
      push: md`lines`,
      body: [lineList(rows.map((_, n) => md`${n} ${"l".repeat(600)}`))],
    });
    expect(complaintsOf(lines)).toEqual([]);
    expect(JSON.stringify(lines.blocks.at(-1))).toMatch(/… \d+ more/);
    const cells = rows.map((_, n) => [`r-${n}`]);
    const both = rowsOverTable(
      md`*30 open*`,
      30,
      rows.slice(0, 20).map((row) => [row, row]),
      (from, room) => table("Others", ["Request"], cells.slice(from), room),
    );
    expect(complaintsOf(both)).toEqual([]);
    expect(JSON.stringify(both.blocks.at(-1))).toContain("r-29");
  });

  it("shows as many rows of a list as Slack takes blocks, not one less, and all where they fit", () => {
    for (const count of [1, limits.blocks - 1, limits.blocks, limits.blocks + 1, 60, 97, 1_000]) {
      const rows = Array.from({ length: count }, (_, n) => paragraph(md`row ${n}`));
      const made = card({ push: md`rows`, body: [list(rows)] });
      expect(made.blocks).toHaveLength(Math.min(count, limits.blocks));
      const isCut = JSON.stringify(made.blocks.at(-1)).includes("more");
      expect(isCut).toBe(count > limits.blocks);
    }
  });

  it("weighs no more than Slack takes where no list was cut, and keeps the buttons at its end", () => {
    const heavy = Array.from({ length: 9 }, () => paragraph(md`${"x".repeat(2000)}`));
    const made = card({ push: md`heavy`, body: [heavy, waysRow([again])] });
    expect(complaintsOf(made)).toEqual([]);
    expect(JSON.stringify(made.blocks.at(-2))).toMatch(/… \d more not shown/);
    expect(made.blocks.at(-1)?.type).toBe("actions");
    expect(weightOf(fitting([...heavy, ...heavy]))).toBeLessThanOrEqual(limits.weight);
  });

  it("says how a channel is opened only where the channel is why", () => {
    expect(howToOpen("not_in_channel")?.value).toContain("/invite");
    expect(howToOpen("is_archived")?.value).not.toContain("/invite");
    expect(howToOpen("restricted_action_read_only_channel")?.value).not.toContain("/invite");
    for (const error of ["msg_blocks_too_long", "invalid_blocks", "edit_window_closed", "limited"])
      expect(howToOpen(error)).toBeUndefined();
  });

  it("has no table without rows, and sorts a column by number where all of it are numbers", () => {
    expect(table("none", ["a"], [])).toEqual({ part: undefined, shown: 0 });
    const { part, shown } = table(
      "VMs",
      ["Name", "CPU"],
      [
        ["7", "16"],
        ["web-1", "2"],
      ],
    );
    expect(shown).toBe(2);
    expect(part && tableBlock(part).rows.map((row) => row.map(({ type }) => type))).toEqual([
      ["raw_text", "raw_text"],
      ["raw_text", "raw_number"],
      ["raw_text", "raw_number"],
    ]);
  });

  it("has a table whose times everyone reads in their own zone, and in UTC where Slack can't", () => {
    const at = Date.UTC(2026, 10, 30, 22, 31);
    const { part } = table("Pins", ["VM", "Since"], [["web-2", { at }]]);
    expect(complaintsOf(card({ push: md`Pins`, body: [part] }))).toEqual([]);
    expect(part && tableBlock(part).rows[1]?.[1]).toMatchObject({
      elements: [
        {
          elements: [
            {
              timestamp: at / 1000,
              format: "{date_short_pretty} {time}",
              fallback: "Nov 30, 2026, 10:31 PM UTC",
            },
          ],
        },
      ],
    });
  });

  it("has a table whose names are shortened in the middle, unless two would read alike", () => {
    const names = (...all: string[]) =>
      table(
        "VMs",
        ["VM", "Status"],
        all.map((one) => [one, "RUNNING"]),
      ).part?.rows.map(([cell]) => cell);
    const long = (end: string, middle = "") =>
      `🔴 payments-eu-west-${middle}${"x".repeat(40)}-worker-${end}`;
    expect(names("🟢 web-2", long("1"), long("2"))).toEqual([
      "🟢 web-2",
      "🔴 payments-eu-wes…xxxxxxx-worker-1",
      "🔴 payments-eu-wes…xxxxxxx-worker-2",
    ]);
    expect(names(long("1"), long("1", "b"))).toEqual([long("1"), long("1", "b")]);
  });

  it("mentions only those whom our own builders mention", () => {
    const made = sentence(md`${mention("U0OLIVIA")} ${"<@U0VICTIM>"} at ${when(0)}`);
    expect(controlsIn(made)).toEqual(["<@U0OLIVIA>", "<@U0OLIVIA>"]);
    expect(made.text).toMatch(/^<@U0OLIVIA> &lt;@.?U0VICTIM&gt; at 12:00:00 AM UTC$/);
  });

  it("names its channels and nobody else in a notification", () => {
    const text = md`${mention("U0ADA")} The digest for ${channelLink("C01OPS")} could not be made.`;
    expect(asPost(sentence(text)).text).toBe("The digest for <#C01OPS> could not be made.");
  });

  it("is read aloud in words: no stars, no dates in brackets", () => {
    expect(readable(md`*Restart* ${name("web-1")} at ${when(0)}`).value).toBe(
      "Restart web-1 at 12:00:00 AM UTC",
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
        card({
          push: md`m`,
          body: [
            waysRow([
              {
                label: "a",
                action: "b",
                value: "c",
                confirm: { title: "t", text: "x".repeat(900), confirm: "y" },
              },
            ]),
          ],
        }),
      ),
    ).toEqual([]);
  });

  it("is heard with what it is about, and shows its label alone", () => {
    const heard = (label: string, about?: string) => {
      const { text, accessibility_label: said } = button({ ...again, label, about });
      expect(text.text).toBe(label);
      return said;
    };
    expect(heard("Show", "train-7")).toBe("Show train-7");
    expect(heard("Restart…", "web-1")).toBe("Restart web-1…");
    expect(heard("Share in channel")).toBeUndefined();
    const long = heard("Restart…", `payments-${"x".repeat(80)}-worker-17`);
    expect(long).toMatch(/^Restart payments-x+…x+-worker-17…$/);
    expect(long).toHaveLength(limits.buttonText);
    expect(heard("Show", " \u202e<!channel>\n")).toBe("Show <!channel>");
  });

  it("is heard with its number where two of a message are about what sounds alike", () => {
    const details = (value: string) =>
      ({
        label: "Details",
        about: "vm restart web-2, 6:27:34 PM UTC",
        action: "show",
        value,
      }) as const;
    const { blocks } = card({
      push: md`m`,
      body: [waysRow([details("1")]), waysRow([details("2"), again]), waysRow([details("2")])],
    });
    const labels = JSON.stringify(blocks).match(/(?<="accessibility_label":")[^"]*/g);
    expect(labels).toEqual([
      "Details vm restart web-2, 6:27:34 PM UTC, 1 of 2",
      "Details vm restart web-2, 6:27:34 PM UTC, 2 of 2",
      "Details vm restart web-2, 6:27:34 PM UTC, 2 of 2",
    ]);
  });

  it("shows what it is about in a menu, which takes no label for screen readers", () => {
    const menu = paragraph(md`x`, [
      { ...again, about: "web-1" },
      { ...again, label: "Snooze" },
    ]);
    expect(JSON.stringify(card({ body: [menu] }).blocks)).toMatch(
      /"text":"Again web-1".*"text":"Snooze"/,
    );
  });

  it("stands in no menu when it asks: Slack asks for all of its options or for none", () => {
    const look = { label: "Show", action: "run:vm.show", value: "{}" };
    const confirm = { title: "t", text: "x", confirm: "y" };
    expect(fitsMenu([look, look])).toBe(true);
    expect(fitsMenu([look, { ...look, confirm }])).toBe(false);
  });

  it("rows are left out when there are none", () => {
    expect(card({ body: [waysRow([])] }).blocks).toEqual([]);
    expect(plainText("").text).toBe(" ");
    expect(new Markdown("x").toString()).toBe("x");
  });
});
