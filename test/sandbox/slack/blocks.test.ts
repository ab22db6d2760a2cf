import { describe, expect, it } from "vitest";
import { card } from "../../../src/messages/card.ts";
import * as parts from "../../../src/messages/parts.ts";
import { table } from "../../../src/messages/table.ts";
import { md } from "../../../src/messages/markdown.ts";
import type { SandboxSlack } from "../../../sandbox/slack/sandbox-slack.ts";
import { startSlack } from "./start-slack.ts";
import { callApi } from "./call-api.ts";

const build = { ...parts, card, table };
const post = "chat.postMessage";
const plain = (text: string) => ({ type: "plain_text", text });
const button = (more = {}) => ({ type: "button", text: plain("Go"), action_id: "go", ...more });
const actions = (...elements: object[]) => ({ type: "actions", elements });
const many = <T>(count: number, one: T) => Array.from({ length: count }, () => one);

const cell = (text: string) => ({ type: "raw_text", text });
const lines = (categories: string[]) => ({
  type: "line",
  series: [{ name: "CPU", data: categories.map((label) => ({ label, value: 1 })) }],
  axis_config: { categories, x_label: "Time" },
});
const chart = (more = {}) => ({
  type: "data_visualization",
  title: "CPU",
  chart: lines(["a", "b"]),
  ...more,
});

const refused: [what: string, blocks: unknown, complaint: string][] = [
  [
    "51 blocks",
    many(51, { type: "divider" }),
    "no more than 50 items allowed [json-pointer:/blocks]",
  ],
  [
    "an unknown type",
    [{ type: "banner" }],
    "unsupported type: banner [json-pointer:/blocks/0/type]",
  ],
  [
    "a misspelt property",
    [{ type: "divider", blockId: "x" }],
    "invalid additional property: blockId [json-pointer:/blocks/0]",
  ],
  [
    "a section of 3001 characters",
    [{ type: "section", text: plain("x".repeat(3001)) }],
    "must be less than 3001 characters [json-pointer:/blocks/0/text/text]",
  ],
  [
    "an empty section",
    [{ type: "section" }],
    "must define either `text` or `fields` [json-pointer:/blocks/0]",
  ],
  [
    "empty text",
    [{ type: "section", text: plain("") }],
    "must be more than 0 characters [json-pointer:/blocks/0/text/text]",
  ],
  [
    "mrkdwn in a header",
    [{ type: "header", text: { type: "mrkdwn", text: "a" } }],
    "[json-pointer:/blocks/0/text/type]",
  ],
  [
    "a header of 151 characters",
    [{ type: "header", text: plain("x".repeat(151)) }],
    "must be less than 151 characters",
  ],
  [
    "26 buttons",
    [actions(...many(26, button()))],
    "no more than 25 items allowed [json-pointer:/blocks/0/elements]",
  ],
  [
    "11 context elements",
    [{ type: "context", elements: many(11, plain("a")) }],
    "no more than 10 items allowed",
  ],
  ["equal action ids in a block", [actions(button(), button())], 'action_id "go" already exists'],
  ["equal block ids", many(2, { type: "divider", block_id: "a" }), 'block_id "a" already exists'],
  [
    "a button label of 76 characters",
    [actions(button({ text: plain("x".repeat(76)) }))],
    "must be less than 76 characters",
  ],
  [
    "a value of 2001 characters",
    [actions(button({ value: "x".repeat(2001) }))],
    "must be less than 2001 characters",
  ],
  [
    "a confirm title of 101 characters",
    [actions(button({ confirm: { title: plain("x".repeat(101)), text: plain("a") } }))],
    "must be less than 101 characters",
  ],
  [
    "a missing label",
    [actions({ type: "button", action_id: "a" })],
    "missing required field: text [json-pointer:/blocks/0/elements/0]",
  ],
  [
    "101 options",
    [
      actions({
        type: "static_select",
        action_id: "a",
        options: Array.from({ length: 101 }, (_, i) => ({ text: plain("a"), value: `${i}` })),
      }),
    ],
    "no more than 100 items allowed",
  ],
  [
    "six overflow options",
    [
      actions({
        type: "overflow",
        action_id: "a",
        options: many(6, { text: plain("a"), value: "a" }),
      }),
    ],
    "no more than 5 items allowed",
  ],
  [
    "an empty table cell",
    [{ type: "table", rows: [[{ type: "raw_text", text: "" }]] }],
    "must be more than 0 characters",
  ],
  [
    "two tables",
    many(2, { type: "table", rows: [[{ type: "raw_text", text: "a" }]] }),
    "only_one_table_allowed",
  ],
  [
    "10,001 characters in a table",
    [{ type: "table", rows: many(100, [{ type: "raw_text", text: "x".repeat(101) }]) }],
    "table must be less than 10001 characters",
  ],
  [
    "a table of a head alone",
    [{ type: "data_table", caption: "a", rows: [[cell("a")]] }],
    "no less than 2 items allowed [json-pointer:/blocks/0/rows]",
  ],
  [
    "102 rows in a table",
    [{ type: "data_table", caption: "a", rows: many(102, [cell("a")]) }],
    "no more than 101 items allowed",
  ],
  [
    "a table without a caption",
    [{ type: "data_table", rows: many(2, [cell("a")]) }],
    "missing required field: caption [json-pointer:/blocks/0]",
  ],
  [
    "rows of different lengths",
    [{ type: "data_table", caption: "a", rows: [[cell("a")], [cell("a"), cell("b")]] }],
    "all rows must have the same number of cells",
  ],
  [
    "rich text in the head of a table",
    [{ type: "data_table", caption: "a", rows: many(2, [{ type: "rich_text", elements: [] }]) }],
    "header cells must not be rich_text",
  ],
  [
    "20,001 characters in tables",
    many(2, { type: "data_table", caption: "a", rows: many(100, [cell("x".repeat(101))]) }),
    "data_table must be less than 20001 characters",
  ],
  ["three charts", many(3, chart()), "no more than 2 data_visualization blocks allowed"],
  ["a chart without a title", [chart({ title: "" })], "must be more than 0 characters"],
  [
    "a title of 51 characters",
    [chart({ title: "x".repeat(51) })],
    "must be less than 51 characters [json-pointer:/blocks/0/title]",
  ],
  [
    "21 points",
    [chart({ chart: lines(Array.from({ length: 21 }, (_, n) => `${n}`)) })],
    "no more than 20 items allowed",
  ],
  [
    "a category of 21 characters",
    [chart({ chart: lines(["x".repeat(21)]) })],
    "must be less than 21 characters",
  ],
  [
    "a line that lacks a category",
    [chart({ chart: { ...lines(["a"]), axis_config: { categories: ["a", "b"] } } })],
    "each series must have one data point for each category",
  ],
  [
    "two lines of one name",
    [chart({ chart: { ...lines(["a"]), series: many(2, lines(["a"]).series[0]) } })],
    "series must have unique names",
  ],
  [
    "an alert in a message",
    [{ type: "alert", text: plain("a") }],
    "block type alert is not supported in a message",
  ],
  [
    "a number input in a message",
    [
      {
        type: "input",
        label: plain("a"),
        element: { type: "number_input", is_decimal_allowed: false },
      },
    ],
    "unsupported type: number_input",
  ],
  [
    "an image with two sources",
    [{ type: "image", alt_text: "a", image_url: "https://a/b.png", slack_file: { id: "F1" } }],
    "must define either `image_url` or `slack_file`",
  ],
  [
    "an unknown file",
    [{ type: "image", alt_text: "a", slack_file: { id: "F1" } }],
    "invalid slack file [json-pointer:/blocks/0/slack_file]",
  ],
  ["something that isn't a list", { type: "divider" }, ""],
];

const answerTo = (slack: SandboxSlack, blocks: unknown) =>
  callApi(slack, post, { channel: "C01OPS", text: "fallback", blocks });

describe("blocks in a message", () => {
  it.for(refused)("are refused with %s", async ([, blocks, complaint]) => {
    await using slack = await startSlack({ rateLimits: "off" });
    const answer = await answerTo(slack, blocks);
    expect(answer["ok"]).toBe(false);
    expect(answer["error"]).toMatch(/^invalid_blocks/);
    expect(JSON.stringify(answer["response_metadata"] ?? "").replaceAll('\\"', '"')).toContain(
      complaint,
    );
  });

  it("are taken when they keep the limits, whatever their kind", async () => {
    await using slack = await startSlack({ rateLimits: "off" });
    const row = [
      { type: "raw_text", text: "a" },
      { type: "raw_number", value: 1, text: "1" },
      { type: "rich_text", elements: [] },
    ];
    const blocks = [
      { type: "header", text: plain("Head") },
      {
        type: "section",
        text: { type: "mrkdwn", text: "*a*", verbatim: true },
        accessory: button({ style: "danger" }),
      },
      { type: "section", fields: many(10, plain("a")) },
      {
        type: "rich_text",
        elements: [{ type: "rich_text_section", elements: [{ type: "text", text: "<@U1>" }] }],
      },
      { type: "table", rows: [row, row] },
      { type: "data_table", caption: "VMs", rows: [[cell("a"), cell("b"), cell("c")], row] },
      chart(),
      chart({ chart: { type: "pie", segments: [{ label: "a", value: 1 }] } }),
      { type: "markdown", text: "# hi" },
      { type: "card", title: { type: "mrkdwn", text: "t" }, actions: [button()] },
      { type: "container", title: plain("more"), child_blocks: [{ type: "divider" }] },
      {
        type: "context_actions",
        elements: [
          {
            type: "feedback_buttons",
            action_id: "f",
            positive_button: { text: plain("y"), value: "1" },
            negative_button: { text: plain("n"), value: "0" },
          },
        ],
      },
      { type: "input", label: plain("Say"), element: { type: "plain_text_input", action_id: "t" } },
      { type: "image", alt_text: "a", image_url: "https://example.com/a.png" },
      {
        type: "plan",
        title: "Plan",
        tasks: [{ type: "task_card", task_id: "1", title: "t", status: "pending" }],
      },
    ];
    expect(await answerTo(slack, blocks)).toMatchObject({ ok: true });
  });

  it("built by the bot's own builders always pass", async () => {
    await using slack = await startSlack({ rateLimits: "off" });
    const long = "x`*<!channel>".repeat(900);
    const confirm = { title: long, text: long, confirm: long };
    const message = build.card({
      push: md`${long}`,
      body: [
        build.headingOf(long),
        build.paragraph(md`${long}`),
        build.pairsOf(many(12, ["Label", md`${long}`])),
        build.small(...many(12, md`${long}`)),
        build.waysRow([
          { label: long, action: "a", value: long, confirm },
          { label: long, action: "b", value: "1" },
        ]),
        build.table(long, [long, "b"], many(200, [long, ""])).part,
        many(60, build.rule),
      ],
    });
    expect(await answerTo(slack, message.blocks)).toMatchObject({ ok: true });
    expect(slack.person("olivia").mentions()).toEqual([]);
  });
});
