import { describe, expect, it } from "vitest";
import { parseMarkdown, parseSpans } from "../../../sandbox/page/browser/text/markdown.ts";

describe("a markdown block", () => {
  it("is read part by part", () => {
    const text =
      "# Title\n\nWords\non two lines\n- a\n- b\n\n1. one\n\n> said\n\n```ts\n**raw**\n```\n---\n| A | B |\n|---|---|\n| 1 | `2` |";
    expect(parseMarkdown(text).map(({ kind }) => kind)).toEqual([
      "heading",
      "paragraph",
      "list",
      "list",
      "quote",
      "fence",
      "rule",
      "table",
    ]);
    expect(parseMarkdown(text)[5]).toEqual({ kind: "fence", text: "**raw**" });
  });

  it("knows the usual styles and nothing of HTML", () => {
    expect(parseSpans("**b** *i* ~~s~~ `c` [l](https://a.example) \\*x <b>h</b>")).toEqual([
      { kind: "bold", inner: [{ kind: "text", text: "b" }] },
      { kind: "text", text: " " },
      { kind: "italic", inner: [{ kind: "text", text: "i" }] },
      { kind: "text", text: " " },
      { kind: "strike", inner: [{ kind: "text", text: "s" }] },
      { kind: "text", text: " " },
      { kind: "code", text: "c" },
      { kind: "text", text: " " },
      { kind: "link", url: "https://a.example", inner: [{ kind: "text", text: "l" }] },
      { kind: "text", text: " " },
      { kind: "text", text: "*" },
      { kind: "text", text: "x <b>h</b>" },
    ]);
  });

  it("ends a fence that nobody closed", () => {
    expect(parseMarkdown("```\nopen")).toEqual([{ kind: "fence", text: "open" }]);
  });
});
