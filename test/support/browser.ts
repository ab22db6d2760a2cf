/// <reference lib="dom" />
import { chromium, type Locator, type Page } from "playwright-core";
import { programOf } from "./programs.ts";

/** How long a click may take to have its effect (ms): no machine is that slow. `PATIENCE` is that of until.ts. */
const patienceMs = 300_000 * Number(process.env["PATIENCE"] ?? 1);

const args = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--renderer-process-limit=1",
  "--disable-site-isolation-trials",
  "--disable-extensions",
];

/** Where the browser for tests is; undefined, for `describe.skipIf`, without one. Throws in CI, where it must not be missing. */
export function browserForTests(): string | undefined {
  const found = programOf("chromium");
  if (found === undefined && process.env["CI"])
    throw new Error("There is no browser to test with.");
  return found;
}

export interface OpenOptions {
  /** Handle or id of the person to be; the first member without it. */
  as?: string;
  channel?: string;
  /** 390 × 800, as on a phone. */
  phone?: boolean;
  /** A finger in place of a mouse, which hovers over nothing. */
  touch?: boolean;
  dark?: boolean;
  /** What shows that the page is there; by default who one is. */
  ready?: string;
}

export interface TestBrowser extends AsyncDisposable {
  /** The sandbox page in a tab of its own, which knows nothing of what it showed before. */
  open(url: string, options?: OpenOptions): Promise<SandboxPage>;
}

export async function openBrowser(): Promise<TestBrowser> {
  const executablePath = browserForTests();
  if (executablePath === undefined) throw new Error("There is no browser to open.");
  const browser = await chromium.launch({ executablePath, args, timeout: patienceMs });
  const window = await browser.newContext({ locale: "en-GB", timezoneId: "Europe/Paris" });
  const free: Page[] = [];
  return {
    open: async (url, options = {}) => {
      const { as, channel, phone = false, touch = false, dark = false } = options;
      // A new window, or only a new tab, takes Chromium two seconds of processor time
      const page = touch
        ? new SandboxPage(await browser.newPage({ hasTouch: true, isMobile: true }), [])
        : new SandboxPage(free.pop() ?? (await window.newPage()), free);
      page.tab.setDefaultTimeout(patienceMs);
      await page.tab.setViewportSize(
        phone ? { width: 390, height: 800 } : { width: 1280, height: 860 },
      );
      // What moves can't be measured, and a click waits until it stands still
      await page.tab.emulateMedia({
        colorScheme: dark ? "dark" : "light",
        reducedMotion: "reduce",
      });
      const words = new URLSearchParams();
      if (as !== undefined) words.set("as", as);
      if (channel !== undefined) words.set("channel", channel);
      await page.tab.goto(`${url}#${words}`);
      await page.tab
        .locator(options.ready ?? ".whoami .avatar")
        .last()
        .waitFor({ state: "attached" });
      return page;
    },
    [Symbol.asyncDispose]: () => browser.close(),
  };
}

/** The page as a person uses it: everything is named by the words they read. */
export class SandboxPage implements AsyncDisposable {
  /** For what has no words here. */
  readonly tab: Page;
  readonly #free: Page[];
  /** Scripts that failed and what the browser refused, as it said so. */
  readonly errors: string[] = [];

  /** `free`: where the tab goes when nobody looks at it any more. */
  constructor(tab: Page, free: Page[]) {
    this.tab = tab;
    this.#free = free;
    tab.on("pageerror", (error) => this.errors.push(error.message));
    tab.on("console", (message) => {
      if (message.type() === "error") this.errors.push(message.text());
    });
  }

  /** The dialog on top, or else the whole page. */
  get #top(): Locator {
    return this.tab.locator("dialog[open]:not(:has(~ dialog[open])), body:not(:has(dialog[open]))");
  }

  /** A phone hides it until asked. What counts is the button: just after a resize, the sidebar is still sliding away. */
  async #openSidebar(): Promise<void> {
    const button = this.tab.locator(".shell:not(.sidebar-open) .menu-button:visible");
    if (await button.isVisible()) await button.click();
  }

  /** Becomes somebody else, by name or part of it. */
  async as(name: string): Promise<void> {
    await this.#openSidebar();
    await this.tab.getByRole("button", { name: "You are" }).click();
    await this.tab.getByRole("menuitemradio", { name }).click();
    await this.tab.locator(".whoami", { hasText: name }).waitFor({ state: "attached" });
  }

  /** A channel, or "Home". */
  async goTo(channel: string): Promise<void> {
    await this.#openSidebar();
    await this.tab.locator("#sidebar").getByRole("link", { name: channel }).first().click();
  }

  /** Writes a message or a command and sends it with Enter; in the open thread when told. */
  async type(text: string, where: "channel" | "thread" = "channel"): Promise<void> {
    const composer = this.tab.locator(`.${where} .composer-input`);
    await composer.fill(text);
    await composer.press("Enter");
  }

  /** Presses a button by its exact label, as shown: in the dialog on top if one is open, else the newest on the page. */
  async press(label: string): Promise<void> {
    const named = this.#top.getByRole("button", { name: label, exact: true });
    // Screen readers hear more of some: “Show web-2”.
    const shown = this.#top.locator("button").filter({ hasText: exactly(label) });
    await named.or(shown).and(this.tab.locator(":visible")).last().click();
  }

  async fill(label: string, text: string): Promise<void> {
    await this.#top.getByLabel(label).fill(text);
  }

  /** Chooses in a select, found by its label or placeholder; `typed` first, where it loads its options. */
  async choose(select: string, option: string, typed?: string): Promise<void> {
    const named = this.#top.getByRole("combobox", { name: select });
    const field = named.or(this.#top.getByPlaceholder(select)).last();
    await field.click();
    if (typed !== undefined) await field.fill(typed);
    await this.tab.getByRole("option", { name: option }).locator("visible=true").first().click();
  }

  /** Ticks a checkbox or a radio button. */
  async tick(label: string): Promise<void> {
    await this.#top.getByLabel(label).check();
  }

  /** Opens the thread of the newest message with these words. */
  async openThread(words: string): Promise<void> {
    const message = this.message(words);
    await message.hover();
    await message.getByRole("button", { name: "Reply in thread" }).click();
    await this.tab.locator("aside.thread .message").first().waitFor();
  }

  async pickShortcut(name: string): Promise<void> {
    await this.tab.locator(".channel").getByRole("button", { name: "Shortcuts" }).click();
    await this.tab.getByRole("menuitem", { name }).click();
  }

  async pickMessageShortcut(name: string, words: string): Promise<void> {
    const message = this.message(words);
    await message.hover();
    await message.getByRole("button", { name: "More about this message" }).click();
    await this.tab.getByRole("menuitem", { name }).click();
  }

  /** The newest message with these words in the channel, or in the thread. */
  message(words: string, where: "channel" | "thread" = "channel"): Locator {
    return this.tab.locator(`.${where} .message`, { hasText: words }).last();
  }

  /** Waits until these words can be seen. */
  async sees(words: string): Promise<void> {
    await this.tab.getByText(words).locator("visible=true").first().waitFor();
  }

  /** Waits until these words can't be seen (any more). */
  async seesNot(words: string): Promise<void> {
    await this.tab.waitForFunction((gone) => !document.body.innerText.includes(gone), words);
  }

  async screenshot(path: string): Promise<void> {
    await this.tab.screenshot({ path, animations: "disabled" });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.tab.removeAllListeners();
    await this.tab.evaluate(() => {
      localStorage.clear();
      sessionStorage.clear();
    });
    await this.tab.goto("about:blank");
    this.#free.push(this.tab);
  }
}

const exactly = (label: string) => new RegExp(`^${RegExp.escape(label)}$`, "u");
