import { expect, it } from "vitest";
import { section } from "../../src/messages/blocks.ts";
import { buttons } from "../../src/messages/button-elements.ts";
import { md } from "../../src/messages/markdown.ts";
import { sameSounding } from "./same-sounding.ts";

const show = (vm: string, about?: string) => ({ label: "Show", about, action: "run", value: vm });

it("hears two buttons that sound the same and do something else", () => {
  const said = (...blocks: readonly object[]) => sameSounding({ args: { blocks }, ok: true });
  const [first, second] = [section(md`1`, show("1")), section(md`2`, show("2"))];
  expect(said(first, second)).toEqual(["Show"]);
  expect(said(first, first)).toEqual([]);
  expect(said(...buttons([show("1", "web-1"), show("2", "web-2")]))).toEqual([]);
  const view = { type: "home", blocks: [first, second] };
  expect(sameSounding({ args: { view: JSON.stringify(view) }, ok: true })).toEqual(["Show"]);
  expect(sameSounding({ args: { view }, ok: false })).toEqual([]);
});
