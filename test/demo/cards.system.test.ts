/// <reference lib="dom" />
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeCards } from "../../demo/cards/gallery.ts";
import { startGatehouseSlack } from "../../demo/world.ts";
import { startPage } from "../../sandbox/page/page.ts";
import { browserForTests, openBrowser, type TestBrowser } from "../support/browser.ts";

describe.skipIf(browserForTests() === undefined)("the page of every card", () => {
  let browser: TestBrowser;
  let slack: Awaited<ReturnType<typeof startGatehouseSlack>>;
  let page: Awaited<ReturnType<typeof startPage>>;
  beforeAll(async () => {
    slack = await startGatehouseSlack();
    page = await startPage({ slack, cards: makeCards });
    browser = await openBrowser();
  });
  afterAll(async () => {
    await browser[Symbol.asyncDispose]();
    await page.close();
    await slack.close();
  });

  it.each([
    ["desktop", "light", "usual"],
    ["phone", "dark", "usual"],
    ["desktop", "dark", "long"],
    ["phone", "light", "long"],
  ] as const)(
    "cuts no text off, and lays nothing over it: on a %s, %s, with %s names",
    async (size, scheme, names) => {
      await using opened = await browser.open(`${page.url}cards?names=${names}`, {
        phone: size === "phone",
        dark: scheme === "dark",
        ready: ".specimen",
      });
      const cards = await makeCards("usual");
      expect(await opened.tab.locator(".specimen").count()).toBe(cards.length);
      expect(await opened.tab.locator(".unknown").count()).toBe(0);
      expect(await opened.tab.evaluate(faultsOf)).toEqual([]);
      expect(opened.errors).toEqual([]);
    },
  );
});

/** In the browser: what scrolls sideways, what is cut off, and what lies over words. */
function faultsOf(): string[] {
  const faults = new Set<string>();
  const nameOf = (node: Element) =>
    node.closest(".specimen")?.getAttribute("aria-label") ?? node.tagName;
  const gallery = document.querySelector(".gallery");
  if (gallery && gallery.scrollWidth > gallery.clientWidth) faults.add("the page scrolls sideways");
  const frames = [...document.querySelectorAll(".frame")].filter((frame) =>
    frame.checkVisibility(),
  );
  if (frames.length === 0) faults.add("nothing is shown");
  for (const frame of frames) {
    const edge = frame.getBoundingClientRect();
    const tools = [...frame.querySelectorAll(".tools")].map((node) => node.getBoundingClientRect());
    const words = document.createTreeWalker(frame, NodeFilter.SHOW_TEXT);
    const range = document.createRange();
    while (words.nextNode()) {
      const text = words.currentNode;
      const around = text.parentElement;
      // A table scrolls by itself, as in Slack
      if (!around?.checkVisibility() || around.closest(".table-box, pre, svg")) continue;
      range.selectNodeContents(text);
      for (const box of range.getClientRects()) {
        if (box.width === 0) continue;
        const said = `${nameOf(frame)}: ${text.textContent?.slice(0, 40)}`;
        if (box.right > edge.right + 0.5 || box.left < edge.left - 0.5) faults.add(`cut: ${said}`);
        const isOver = (tool: DOMRect) =>
          Math.min(box.right, tool.right) > Math.max(box.left, tool.left) &&
          Math.min(box.bottom, tool.bottom) > Math.max(box.top, tool.top) + 0.5;
        if (tools.some(isOver)) faults.add(`covered: ${said}`);
      }
    }
    for (const node of frame.querySelectorAll<HTMLElement>("*")) {
      const { overflowX, overflowY } = getComputedStyle(node);
      const isCut = /hidden|clip/.test(overflowX) && node.scrollWidth > node.clientWidth + 1;
      const isLow = /hidden|clip/.test(overflowY) && node.scrollHeight > node.clientHeight + 1;
      if ((isCut || isLow) && node.textContent !== "" && node.checkVisibility())
        faults.add(`cut: ${nameOf(frame)}: ${node.className} ${node.textContent?.slice(0, 40)}`);
    }
  }
  return [...faults];
}
