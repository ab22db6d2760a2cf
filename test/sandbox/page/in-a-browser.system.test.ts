import axe from "axe-core";
import type { Locator } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  browserForTests,
  openBrowser,
  type SandboxPage,
  type TestBrowser,
} from "../../support/browser.ts";
import { callApi } from "../slack/call-api.ts";
import { startPageWorld } from "./small-app.ts";
import { until } from "../../support/until.ts";

const chromium = browserForTests();

describe.skipIf(chromium === undefined)("the sandbox in a browser", () => {
  let browser: TestBrowser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser[Symbol.asyncDispose]());

  it("shows an answer only to the one who asked, and history on ↑", async () => {
    await using world = await startPageWorld();
    await using page = await browser.open(world.url, { as: "olivia", channel: "ops" });
    await page.type("/vm list");
    await page.sees("Only visible to you");
    await page.sees("only for you");
    const composer = page.tab.getByRole("textbox", { name: "Message #ops" });
    await composer.press("ArrowUp");
    expect(await composer.inputValue()).toBe("/vm list");
    await page.as("Amir");
    await page.seesNot("only for you");
    expect(page.errors).toEqual([]);
  });

  it("works in eight tabs at once, one for each person, and tells all of them the news", async () => {
    await using world = await startPageWorld();
    await using tabs = new AsyncDisposableStack();
    const pages: SandboxPage[] = [];
    for (let n = 0; n < 8; n += 1) {
      const as = n % 2 === 0 ? "olivia" : "amir";
      pages.push(tabs.use(await browser.open(world.url, { as, channel: "ops" })));
    }
    await pages.at(-1)?.type("from the eighth tab");
    for (const page of pages) await page.message("from the eighth tab").waitFor();
    expect(pages.flatMap(({ errors }) => errors)).toEqual([]);
  });

  it("asks before a button that wants it, and tells the story in the thread", async () => {
    await using world = await startPageWorld();
    await using page = await browser.open(world.url, { as: "olivia", channel: "ops" });
    await page.type("/vm restart web-1");
    await page.press("Restart");
    await page.sees("It is down for a minute.");
    await page.press("Keep it running");
    expect(world.heard).toEqual([]);
    await page.press("Restart");
    await page.press("Yes, restart");
    await page.sees("web-1 is restarting");
    await page.sees("1 reply");
    expect(world.heard).toEqual(["U0OLIVIA restarts"]);
    await page.openThread("web-1 is restarting");
    await page.sees("web-1 runs again after 41 s");
    await page.type("thank you", "thread");
    await page.sees("2 replies");
    await page.as("Amir");
    await page.message("thank you", "thread").waitFor();
    expect(page.errors).toEqual([]);
  });

  it("fills a modal: an error on its field, an update while typing, a choice that loads", async () => {
    await using world = await startPageWorld();
    await using page = await browser.open(world.url, { as: "olivia", channel: "ops" });
    await page.type("/vm restore db-1");
    await page.sees("Type db-1 to confirm");
    await page.fill("Type db-1 to confirm", "db1");
    await page.press("Restore");
    await page.sees("Please complete this required field.");
    await page.fill("Reason", "corrupt since 02:40");
    await page.choose("Snapshot", "nightly", "night");
    await page.sees("That snapshot is 6 h old");
    await page.tick("Snapshot first");
    await page.press("Restore");
    await page.sees("That isn't db-1.");
    await page.tab.locator(":focus[aria-invalid=true]").waitFor();
    expect(await page.tab.getByLabel("Reason").inputValue()).toBe("corrupt since 02:40");
    await page.fill("Type db-1 to confirm", "db-1");
    await page.press("Restore");
    await page.seesNot("Type db-1 to confirm");
    expect(world.heard).toEqual(["restore to nightly because corrupt since 02:40, 1 way back"]);
    await page.type("/vm restore db-1");
    await page.sees("Type db-1 to confirm");
    expect(await page.tab.getByLabel("Reason").inputValue()).toBe("");
    await page.tab.keyboard.press("Escape");
    await page.seesNot("Type db-1 to confirm");
    expect(page.errors).toEqual([]);
  });

  it("draws what anybody wrote as words, whatever it is", async () => {
    await using world = await startPageWorld();
    await using page = await browser.open(world.url, { as: "olivia", channel: "ops" });
    const evil =
      "<img src=x onerror=\"document.title='pwned'\"><script>document.title='pwned'</script>";
    await page.type(evil);
    await page.sees(evil);
    await callApi(world.slack, "chat.postMessage", {
      channel: "C01OPS",
      text: "evil",
      blocks: [
        {
          type: "section",
          text: { type: "mrkdwn", text: `${evil} <javascript:alert(1)|click me>` },
        },
        { type: "header", text: { type: "plain_text", text: "<b>header</b>" } },
        { type: "markdown", text: "[md](javascript:alert(1)) <b>raw</b>" },
        { type: "table", rows: [[{ type: "raw_text", text: "<i>cell</i>" }]] },
        {
          type: "rich_text",
          elements: [
            {
              type: "rich_text_section",
              elements: [{ type: "link", url: "javascript:alert(2)", text: "rich" }],
            },
          ],
        },
      ],
    });
    for (const words of ["<b>header</b>", "<b>raw</b>", "<i>cell</i>"]) await page.sees(words);
    expect(await page.tab.locator(".messages :is(img, script, a[href^=javascript])").count()).toBe(
      0,
    );
    expect(await page.tab.title()).not.toBe("pwned");
    expect(page.errors).toEqual([]);
  });

  it("shows pictures, files, the Home tab, shortcuts and what Slack itself says", async () => {
    await using world = await startPageWorld();
    await using page = await browser.open(world.url, { as: "olivia", channel: "ops" });
    await upload(world.slack, "cpu.png", onePixel, "CPU between 20 and 80");
    const picture = page.tab.getByRole("img", { name: "CPU between 20 and 80" });
    await picture.waitFor();
    await until(() => picture.evaluate((image: HTMLImageElement) => image.naturalWidth)).toBe(1);
    await page.pickMessageShortcut("Show the VMs named here", "cpu.png");
    await until(() => world.heard.length).toBe(1);
    await page.type("/nothing");
    await page.sees("/nothing is not a valid command.");
    await page.goTo("Home");
    await page.sees("Nothing waits for");
    await page.goTo("status");
    await page.tab.getByRole("textbox", { name: "Message #status" }).waitFor();
    await callApi(world.slack, "chat.postMessage", { channel: "C01OPS", text: "<@U0OLIVIA> look" });
    await page.tab.getByLabel("1 mentions").waitFor();
    expect(page.errors).toEqual([]);
  });

  it("tells the app that its Home was opened by an address, too", async () => {
    await using world = await startPageWorld();
    await using page = await browser.open(world.url, { as: "olivia", channel: "ops" });
    for (const person of ["olivia", "amir"]) {
      await page.tab.evaluate((as) => {
        location.hash = `as=${as}&home=`;
      }, person);
      const name = person === "amir" ? "Amir" : "Olivia";
      await page.tab.locator(".home-body", { hasText: `Nothing waits for @${name}` }).waitFor();
    }
    expect(page.errors).toEqual([]);
  });

  it("writes as many times below a chart as fit, and the last of them whole", async () => {
    await using world = await startPageWorld();
    const charts = [
      ["clock", (n: number) => `11:${n + 40} AM`],
      ["days", (n: number) => `Nov ${n + 10}, 10:00 AM`],
    ] as const;
    for (const [title, label] of charts) {
      const labels = Array.from({ length: 20 }, (_, n) => label(n));
      const chart = {
        type: "line",
        series: [
          series(
            "CPU",
            labels.map((_, n) => n),
            labels,
          ),
        ],
        axis_config: { categories: labels, x_label: "Time" },
      };
      await callApi(world.slack, "chat.postMessage", {
        channel: "C01OPS",
        text: title,
        blocks: [{ type: "data_visualization", title, chart }],
      });
    }
    await using page = await browser.open(world.url, { as: "olivia", channel: "ops" });
    for (const width of [1280, 860, 390]) {
      await page.tab.setViewportSize({ width, height: 800 });
      await page.tab.locator(".chart").nth(1).waitFor();
      for (const chart of await page.tab.locator(".chart svg").all()) {
        const edges = await chart.boundingBox();
        const labels = await chart.locator(".category").evaluateAll((all) =>
          all.map((text) => {
            const { left, right } = text.getBoundingClientRect();
            return { said: text.textContent, left, right };
          }),
        );
        expect(labels.at(-1)?.said).toMatch(/^11:59 AM$|^Nov 29, 10:00 AM$/);
        expect(labels.length).toBeGreaterThan(1);
        let end = edges?.x ?? 0;
        for (const { said, left, right } of labels) {
          expect(left, `${said} at ${width}`).toBeGreaterThanOrEqual(end - 0.5);
          end = right;
        }
        expect(end).toBeLessThanOrEqual((edges?.x ?? 0) + (edges?.width ?? 0) + 0.5);
      }
    }
    expect(page.errors).toEqual([]);
  });

  it("draws a chart with its axes and legend, and a table that sorts and turns its pages, for everybody", async () => {
    await using world = await startPageWorld();
    await callApi(world.slack, "chat.postMessage", {
      channel: "C01OPS",
      text: "charts",
      blocks: [...chartBlocks, tableBlock],
    });
    await using page = await browser.open(world.url, { as: "olivia", channel: "ops" });
    const named = (name: string) => page.tab.getByRole("img", { name, exact: true });
    await named("web-1: CPU from 10 to 80, last 30; Memory from 20 to 40, last 40").waitFor();
    await named("VMs by status: RUNNING 1200, ERROR 2").waitFor();
    for (const words of ["Time (UTC)", "Load", "10:05", "1.2K"]) await page.sees(words);
    expect(await page.tab.locator(".legend li").allInnerTexts()).toEqual(["CPU", "Memory"]);
    const table = page.tab.getByRole("table", { name: "VMs" });
    const first = table.getByRole("rowheader").first();
    await until(() => first.innerText()).toBe("vm-1");
    await table.getByRole("button", { name: "CPU" }).click();
    await table.getByRole("button", { name: "CPU" }).click();
    await until(() => first.innerText()).toBe("vm-12");
    await table
      .getByRole("columnheader", { name: "CPU" })
      .and(page.tab.locator("[aria-sort=descending]"))
      .waitFor();
    await page.press("Next");
    await page.sees("11–12 of 12");
    for (const [light, width] of [
      ["light", 1280],
      ["dark", 1280],
      ["dark", 390],
    ] as const) {
      await page.tab.setViewportSize({ width, height: 800 });
      expect(await faultsOf(page, light), `${light}, ${width} wide`).toEqual([]);
      const overhang = await page.tab.evaluate(() => document.documentElement.scrollWidth);
      expect(overhang).toBeLessThanOrEqual(width);
    }
    // Words in the drawing stay readable, and none lies on another
    const words = await page.tab
      .locator(".chart svg text")
      .evaluateAll((all) =>
        all.map((text) => ({ said: text.textContent, ...text.getBoundingClientRect().toJSON() })),
      );
    for (const { said, height } of words)
      if (!said?.includes("Load") && !said?.includes("VMs"))
        expect(height, said ?? "").toBeGreaterThan(10);
    expect(page.errors).toEqual([]);
  });

  it("brings own words into view, counts what is new below, and covers no answer", async () => {
    await using world = await startPageWorld();
    for (let line = 1; line <= 40; line += 1)
      await world.slack.person("amir").types("ops", `line ${line}`);
    await using page = await browser.open(world.url, { as: "olivia", channel: "ops" });
    await page.message("line 40").waitFor();
    const list = page.tab.locator(".channel .messages");
    // Scrolled a moment ago: the browser has not said so yet
    await list.evaluate((node) => {
      addEventListener("scroll", (event) => event.stopImmediatePropagation(), true);
      node.scrollTo(0, 0);
    });
    await world.slack.person("amir").types("ops", "news");
    await world.slack.person("amir").types("ops", "more news");
    await page.press("2 new messages ↓");
    await page.tab.locator(".channel .new-below").waitFor({ state: "hidden" });
    expect(await isInView(page.message("more news"))).toBe(true);
    await list.evaluate((node) => node.scrollTo(0, 0));
    await page.type("mine");
    await until(() => isInView(page.message("mine"))).toBe(true);
    // What stands around the list takes room, and the browser moves what it shows
    await list.evaluate((node) => {
      document
        .querySelector<HTMLElement>(".channel .composer")
        ?.style.setProperty("padding", "90px");
      node.dispatchEvent(new Event("scroll"));
    });
    await world.slack.person("amir").types("ops", "at the end");
    await until(() => isInView(page.message("at the end"))).toBe(true);
    await page.type("/nothing");
    await page.tab.locator(".toast").waitFor();
    const toast = await page.tab.locator(".toast").boundingBox();
    const below = await list.boundingBox();
    expect(toast?.y).toBeGreaterThanOrEqual((below?.y ?? 0) + (below?.height ?? 0));
    await until(() => isInView(page.message("at the end"))).toBe(true);
    expect(page.errors).toEqual([]);
  });

  it("completes with Tab, closes with Escape, invites, and lets nobody write where nobody can", async () => {
    await using world = await startPageWorld();
    world.slack.app.messagesTabReadOnly = true;
    const [vm] = world.slack.app.commands;
    if (vm) vm.usageHint = "list · restart <vm…> · restore <vm>";
    await using page = await browser.open(world.url, { as: "olivia", channel: "random" });
    const composer = page.tab.locator(".channel .composer-input");
    await composer.pressSequentially("/v");
    await composer.press("Tab");
    await composer.pressSequentially("resta");
    await composer.press("Tab");
    expect(await composer.inputValue()).toBe("/vm restart ");
    await page.type("/invite @gatehouse");
    await page.sees("was added to #random");
    await page.openThread("was added to #random");
    await composer.focus();
    await composer.press("Escape");
    await page.tab.locator("aside.thread").waitFor({ state: "hidden" });
    await page.goTo("gatehouse");
    await page.sees("Sending messages to this app has been turned off.");
    expect(await composer.isVisible()).toBe(false);
    expect(page.errors).toEqual([]);
  });

  it("begins with who is who, writes what to try, breaks things, and shows a phone", async () => {
    await using world = await startPageWorld({ more: true });
    await using page = await browser.open(world.url);
    await page.sees("Three things to try");
    await page.tab.locator(".tries").getByRole("button", { name: "/vm stop web-2" }).click();
    await page.tab.locator(".whoami", { hasText: "Vera" }).waitFor();
    const composer = page.tab.locator(".channel .composer-input:focus");
    await until(() => composer.inputValue()).toBe("/vm stop web-2");
    await page.sees("Press Enter or Send to run it as Vera.");
    await page.press("Send");
    await page.seesNot("Press Enter or Send");
    await page.press("Weather");
    const lost = page.tab.getByRole("switch", { name: "Lost answers" });
    await lost.click();
    await page.tab.locator(".switch[aria-checked=true]").waitFor();
    expect(world.compute.forecast()).toMatchObject([{ match: "writes", lost: "after" }]);
    const row = page.tab.locator(".truth tr", { hasText: "web-2" });
    await row.getByRole("button").click();
    await page.tab.getByRole("menuitem", { name: "Stop it" }).click();
    await row.getByText("STOPPED").waitFor();
    await page.press("Everything back to normal");
    await page.tab.locator(".switch[aria-checked=true]").waitFor({ state: "detached" });
    const text = `<@U0AMIR> asks: *restore* ${"x".repeat(200)}`;
    await callApi(world.slack, "chat.postMessage", { channel: "C02STATUS", text });
    const phone = page.tab.locator(".buzz");
    expect((await phone.locator(".buzz-text").innerText()).length).toBeLessThanOrEqual(150);
    await phone.getByRole("button", { name: "Open it as Amir" }).click();
    await page.tab.locator(".whoami", { hasText: "Amir" }).waitFor();
    await page.tab.getByRole("heading", { name: "#status" }).waitFor();
    await phone.waitFor({ state: "detached" });
    expect(page.errors).toEqual([]);
  });

  it("has no fault for those who hear it, or see it badly, in ten states", async () => {
    await using world = await startPageWorld({ more: true });
    await using page = await browser.open(world.url);
    await page.sees("Three things to try");
    expect(await faultsOf(page, "light"), "the first screen").toEqual([]);
    await page.goTo("status");
    expect(await faultsOf(page, "dark"), "an empty channel").toEqual([]);
    await page.goTo("ops");
    const links =
      "Ask <@U0AMIR> or <!subteam^S0ONCALL> in <#C01OPS>, or read <https://a.example|it> first.";
    const linked = { type: "section", text: { type: "mrkdwn", text: links } };
    await callApi(world.slack, "chat.postMessage", {
      channel: "C01OPS",
      text: "tables",
      blocks: [linked, { ...tableBlock, block_id: "one" }, { ...tableBlock, block_id: "two" }],
    });
    await page.sees("first.");
    for (const light of ["light", "dark"] as const)
      expect(await faultsOf(page, light), `links and tables, ${light}`).toEqual([]);
    await page.type("/vm list");
    await page.type("/nothing");
    await page.sees("is not a valid command");
    expect(await faultsOf(page, "light"), "an answer and a toast").toEqual([]);
    await page.type("/vm restart web-1");
    await page.press("Restart");
    await page.sees("It is down for a minute.");
    expect(await faultsOf(page, "dark"), "a question").toEqual([]);
    await page.press("Yes, restart");
    await page.sees("1 reply");
    await page.openThread("web-1 is restarting");
    await page.press("Weather");
    await page.tab.locator("label", { hasText: "Lost answers" }).click();
    await page.tab.locator(".switch[aria-checked=true]").waitFor();
    expect(await faultsOf(page, "light"), "a thread and the weather").toEqual([]);
    await page.tab.locator(".whoami").click();
    await page.tab.getByRole("menu").waitFor();
    expect(await faultsOf(page, "dark"), "a menu").toEqual([]);
    await page.tab.keyboard.press("Escape");
    await page.type("/vm restore db-1");
    await page.sees("Type db-1 to confirm");
    await page.press("Restore");
    await page.sees("Please complete this required field.");
    expect(await faultsOf(page, "light"), "a form with errors").toEqual([]);
    await page.press("Keep as it is");
    await page.goTo("Home");
    await page.sees("Nothing waits for");
    expect(await faultsOf(page, "dark"), "the Home tab").toEqual([]);
    await page.tab.setViewportSize({ width: 390, height: 800 });
    await page.press("Close weather");
    await page.tab.locator(".menu-button:visible").click();
    await page.tab.locator(".sidebar-open").waitFor();
    expect(await faultsOf(page, "light"), "a phone's channels").toEqual([]);
  });

  it("goes where the story goes: to Amir in #ops, with room to write", async () => {
    await using world = await startPageWorld({ more: true });
    await using page = await browser.open(world.url);
    await page.sees("Three things to try");
    await page.tab.locator(".story").getByRole("button", { name: "Switch to Amir" }).click();
    await page.tab.getByRole("heading", { name: "#ops", exact: true }).waitFor();
    await page.tab.locator(".whoami", { hasText: "Amir" }).waitFor();
    await page.goTo("Start here");
    await page.tab.locator(".cast").getByRole("button", { name: "Switch to Ada" }).click();
    await page.tab.locator(".whoami", { hasText: "Ada" }).waitFor();
    await page.goTo("ops");
    const composer = page.tab.locator(".channel .composer-input");
    expect((await composer.boundingBox())?.height).toBeGreaterThan(20);
    expect(page.errors).toEqual([]);
  });

  it("fits a phone from the first screen on, and scrolls at the edge of a desktop", async () => {
    await using world = await startPageWorld({ more: true });
    await using page = await browser.open(world.url);
    await page.sees("Three things to try");
    const scroller = await page.tab.locator(".guide-body").boundingBox();
    expect((scroller?.x ?? 0) + (scroller?.width ?? 0)).toBe(1280);
    await page.tab.setViewportSize({ width: 390, height: 844 });
    expect(await cutOff(page), "the first screen").toEqual([]);
    await page.press("Weather");
    expect(await cutOff(page), "the weather").toEqual([]);
    await page.press("Close weather");
    await page.goTo("Home");
    await page.tab.locator("#sidebar").waitFor({ state: "hidden" });
    expect(await cutOff(page), "the Home tab").toEqual([]);
    await page.goTo("Start here");
    await page.tab.locator(".tries").getByRole("button", { name: "/vm restart web-2" }).click();
    await page.sees("Press Enter or Send to run it as Olivia.");
    expect(await cutOff(page), "a command to send").toEqual([]);
    expect(page.errors).toEqual([]);
  });

  it("lays phones over none of the places in a narrow window", async () => {
    await using world = await startPageWorld({ more: true });
    await using page = await browser.open(world.url, { as: "olivia", channel: "ops" });
    await page.tab.setViewportSize({ width: 860, height: 680 });
    const text = `<@U0AMIR> asks: *restore* ${"word ".repeat(40)}`;
    for (let n = 0; n < 2; n += 1)
      await callApi(world.slack, "chat.postMessage", { channel: "C02STATUS", text });
    await page.tab.locator(".buzz:visible").first().waitFor();
    const home = page.tab.locator("#sidebar").getByRole("link", { name: "Home" });
    const isOnTop = await home.evaluate((link) => {
      const { x, y, width, height } = link.getBoundingClientRect();
      const found = document.elementFromPoint(x + width / 2, y + height - 2);
      return link.contains(found);
    });
    expect(isOnTop).toBe(true);
    expect(page.errors).toEqual([]);
  });

  it.each([
    ["where fingers touch", true],
    ["in a window as narrow as a phone", false],
  ])("lays the icons of a message over no words %s", async (_, touch) => {
    await using world = await startPageWorld();
    const amir = world.slack.person("amir");
    const long = "as long as a line of a phone may be, and longer than that by many words";
    for (const words of [long, `${long}, a second time`]) await amir.types("ops", words);
    await using page = await browser.open(world.url, {
      as: "olivia",
      channel: "ops",
      phone: true,
      touch,
    });
    await page.message("second time").waitFor();
    const covered = await page.tab.locator(".message").evaluateAll((messages) =>
      messages.flatMap((message) => {
        const tools = message.querySelector(".tools")?.getBoundingClientRect();
        const isCovered = ({ left, right, top, bottom }: DOMRect) =>
          tools !== undefined &&
          Math.min(right, tools.right) > Math.max(left, tools.left) &&
          Math.min(bottom, tools.bottom) > Math.max(top, tools.top);
        const words = document.createRange();
        // Of the message before it, too
        return [...document.querySelectorAll(".author, .message header time, .words")].flatMap(
          (node) => {
            words.selectNodeContents(node);
            return [...words.getClientRects()].some(isCovered) ? [node.textContent] : [];
          },
        );
      }),
    );
    expect(covered).toEqual([]);
    await page.message("second time").hover();
    const more = { name: "More about this message" };
    await page.message("second time").getByRole("button", more).click();
    await page.tab.getByRole("menuitem", { name: "Reply in thread" }).waitFor();
    expect(page.errors).toEqual([]);
  });

  it("fits a phone: the channels come and go, nothing is wider than the screen", async () => {
    await using world = await startPageWorld();
    await using page = await browser.open(world.url, {
      as: "olivia",
      channel: "ops",
      phone: true,
      dark: true,
    });
    await page.type("/vm restart web-1");
    await page.sees("Restart web-1?");
    expect(await page.tab.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(
      390,
    );
    await page.goTo("status");
    await page.tab.getByRole("textbox", { name: "Message #status" }).waitFor();
    expect(page.errors).toEqual([]);
  });
});

/** What reaches beyond the right edge of what can be seen. */
const cutOff = ({ tab }: SandboxPage) =>
  tab.evaluate(() =>
    [...document.querySelectorAll<HTMLElement>(".shell *")]
      .filter((node) => node.checkVisibility({ visibilityProperty: true }))
      .filter((node) => node.getBoundingClientRect().right > innerWidth)
      .map((node) => node.textContent.slice(0, 40)),
  );

const isInView = (message: Locator) =>
  message.evaluate((node) => {
    const { top, bottom } = node.getBoundingClientRect();
    const list = node.closest(".messages")?.getBoundingClientRect();
    return list !== undefined && top >= list.top && bottom <= list.bottom + 1;
  });

/** What axe finds, by light or in the dark. */
async function faultsOf({ tab }: SandboxPage, colorScheme: "light" | "dark"): Promise<string[]> {
  if (!(await tab.evaluate(() => "axe" in window))) await tab.evaluate(`${axe.source}; 0`);
  await tab.emulateMedia({ colorScheme });
  const { violations } = await tab.evaluate(() =>
    window.axe.run(document, { resultTypes: ["violations"] }),
  );
  return violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.join(" ")).join()}`,
  );
}

declare global {
  interface Window {
    axe: typeof axe;
  }
}

const categories = ["10:00", "10:05", "10:10"];
const series = (name: string, values: number[], labels = categories) => ({
  name,
  data: labels.map((label, index) => ({ label, value: values[index] ?? 0 })),
});
const chartBlocks = [
  {
    type: "data_visualization",
    title: "web-1",
    chart: {
      type: "line",
      series: [series("CPU", [10, 80, 30]), series("Memory", [20, 30, 40])],
      axis_config: { categories, x_label: "Time (UTC)", y_label: "Load" },
    },
  },
  {
    type: "data_visualization",
    title: "VMs by status",
    chart: {
      type: "bar",
      series: [series("VMs", [1200, 2], ["RUNNING", "ERROR"])],
      axis_config: { categories: ["RUNNING", "ERROR"], y_label: "VMs" },
    },
  },
];
const tableBlock = {
  type: "data_table",
  caption: "VMs",
  page_size: 10,
  rows: [
    ["Name", "CPU"].map((text) => ({ type: "raw_text", text })),
    ...Array.from({ length: 12 }, (_, n) => [
      { type: "raw_text", text: `vm-${n + 1}` },
      { type: "raw_number", value: n + 1, text: `${n + 1}` },
    ]),
  ],
};

const onePixel = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

async function upload(
  slack: Awaited<ReturnType<typeof startPageWorld>>["slack"],
  filename: string,
  bytes: Buffer,
  alt: string,
): Promise<void> {
  const announced = await callApi(slack, "files.getUploadURLExternal", {
    filename,
    length: String(bytes.length),
    alt_txt: alt,
  });
  await fetch(String(announced["upload_url"]), { method: "POST", body: new Uint8Array(bytes) });
  await callApi(slack, "files.completeUploadExternal", {
    files: [{ id: announced["file_id"], title: filename }],
    channel_id: "C01OPS",
  });
}
