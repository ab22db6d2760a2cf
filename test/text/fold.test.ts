import { describe, expect, it } from "vitest";
import { fold, plainForm } from "../../src/text/fold.ts";

describe("a name that is compared", () => {
  it.each(["‐", "‑", "‒", "–", "−", "－", "﹣", "⁃", "⁻"])(
    "has one hyphen, whatever the keyboard wrote: %s",
    (hyphen) => {
      expect(fold(`Web${hyphen}1`)).toBe("web-1");
    },
  );

  it.each([
    ["ｗｅｂ－１", "web-1"],
    ["ＷＥＢ-1", "web-1"],
    ["pay／web－1", "pay/web-1"],
    ["cafe\u0301", "café"],
    ["ﬁle", "file"],
    ["web—1", "web—1"],
  ])("is the same in wide letters and in ordinary ones: %s", (typed, folded) => {
    expect(fold(typed)).toBe(folded);
  });

  it("keeps its case where only the form is changed", () => {
    expect(plainForm("Ｗeb‑1")).toBe("Web-1");
  });
});
