import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { browserForTests, openBrowser, type TestBrowser } from "../../support/browser.ts";
import { callApi } from "../slack/call-api.ts";
import { startPageWorld } from "./small-app.ts";

const chromium = await browserForTests();

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
    await expect
      .poll(() => picture.evaluate((image: HTMLImageElement) => image.naturalWidth))
      .toBe(1);
    await page.pickMessageShortcut("Show the VMs named here", "cpu.png");
    await expect.poll(() => world.heard.length).toBe(1);
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
