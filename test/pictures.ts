/// <reference lib="dom" />
import { writeFile } from "node:fs/promises";
import { demoGuide } from "../demo/guide.ts";
import { demoWorld } from "../demo/demo-world.ts";
import { startPage } from "../sandbox/page/page.ts";
import { createDemoWeather } from "../demo/weather.ts";
import { buildWorld } from "../demo/world.ts";
import { openBrowser, type SandboxPage } from "./support/browser.ts";

/**
 * `node test/pictures.ts` plays scenes in the demo's world and writes their pictures into docs/: `name.png` as on a desktop,
 * `name-phone.png` as on a phone in the dark. The browser needs a font with emoji (fonts-noto-color-emoji).
 */
const { prepare, ...demo } = demoWorld();
await using world = await buildWorld({
  ...demo,
  compute: { transitionMs: [900, 1500] },
  prepare(compute) {
    prepare(compute);
    const project = compute.edit.addProject({ name: "edge", type: "TEE_VM" });
    for (let n = 1; n <= 20; n += 1)
      compute.edit.addVm({ project, name: `edge-${n}`, status: "RUNNING" });
  },
});
const still = {
  isUp: () => true,
  kill: async () => {},
  start: async () => {},
  close: async () => {},
};
const weather = createDemoWeather({ ...world, redis: still, worker: still });
await using page = await startPage({ slack: world.slack, guide: demoGuide, weather });
await using browser = await openBrowser();
const person = (name: string) => world.slack.person(name);

interface Scene {
  as: string;
  channel?: string;
  /** Words that must be read, and are scrolled to. */
  words: string;
  /** Beside the channel, the first thread. */
  isThreadOpen?: boolean;
  isWeatherOpen?: boolean;
}

async function look(scene: Scene, isPhone: boolean): Promise<Buffer> {
  const { as, channel, words } = scene;
  const options = { as, phone: isPhone, dark: isPhone, ...(channel ? { channel } : {}) };
  await using window: SandboxPage = await browser.open(page.url, options);
  if (scene.isThreadOpen === true) await window.tab.getByText("1 reply").first().click();
  if (scene.isWeatherOpen === true) await window.tab.locator(".weather-button:visible").click();
  const found = window.tab.getByText(words).last();
  await found.evaluate((node) => node.scrollIntoView({ block: "nearest" }));
  await window.tab.evaluate(() => document.fonts.ready);
  return await window.tab.screenshot({ animations: "disabled" });
}

const both = (scene: Scene) => Promise.all([look(scene, false), look(scene, true)]);

async function take(name: string, scene: Scene): Promise<void> {
  const [desktop, phone] = await both(scene);
  await writeFile(`docs/${name}.png`, desktop);
  await writeFile(`docs/${name}-phone.png`, phone);
  process.stdout.write(`${name}\n`);
}

/** A desktop and a phone beside each other. */
async function takeBoth(name: string, scene: Scene): Promise<void> {
  const images = (await both(scene)).map(
    (png) => `<img src="data:image/png;base64,${png.toString("base64")}">`,
  );
  await using window = await browser.open(page.url, { as: scene.as });
  await window.tab.goto("about:blank");
  await window.tab.setViewportSize({ width: 1280 + 16 + 390, height: 800 });
  await window.tab.setContent(
    `<body style="margin: 0; display: flex; gap: 16px; align-items: start">${images.join("")}`,
  );
  await writeFile(`docs/${name}.png`, await window.tab.screenshot({ omitBackground: true }));
  // Closing it empties the page's storage, which a blank page lacks
  await window.tab.goto(page.url);
  process.stdout.write(`${name}\n`);
}

const sees = (name: string, words: string) =>
  person(name).until((seen) => JSON.stringify(seen.channels).includes(words));

await takeBoth("first-screen", { as: "olivia", words: "Two teams share" });

// A restart in search, asked for in #status
await person("mia").types("status", "/vm restart index-1");
await sees("noor", "|open>");
await take("approval-elsewhere", { as: "noor", channel: "search", words: "Fingerprint" });
await person("noor").presses("Approve", { channel: "search" });
await sees("mia", "Restarted");

await person("olivia").types("ops", "/vm restart web-2");
await sees("olivia", "Restarted");
await person("olivia").types("ops", "/vm snapshot db-1 before-upgrade");
await sees("olivia", "Took a snapshot");
await person("olivia").types("ops", "/vm restore db-1 before-upgrade");
await person("olivia").until(({ modals }) => modals.some(({ submit }) => submit !== ""));
await person("olivia").presses("What would happen?");
await person("olivia").until((seen) =>
  JSON.stringify(seen.modals).includes("Nothing was requested"),
);
await take("rehearsal", { as: "olivia", channel: "ops", words: "Nothing was requested" });
await person("olivia").closes();
await person("olivia").submits({
  "Type db-1 to confirm": "db-1",
  Reason: "corrupt index after the upgrade",
});
await sees("amir", "corrupt index");
await take("approval", { as: "amir", channel: "ops", words: "Fingerprint" });
const scene = { as: "olivia", channel: "ops", words: "Fingerprint", isThreadOpen: true };
await writeFile("docs/channel.png", await look(scene, false));

await person("olivia").types("status", "/gatehouse digest now");
await sees("olivia", "VMs by status");
await takeBoth("digest", { as: "olivia", channel: "status", words: "VMs by status" });

const ops = { as: "olivia", channel: "ops" };
await person("olivia").types("ops", "/vm restart edge-* --max-unavailable 3");
await person("olivia").until(({ modals }) => modals.some(({ submit }) => submit !== ""));
await person("olivia").submits({ Canary: [] });
await sees("olivia", " of 20 · 3 in progress");
await take("rollout", { ...ops, words: "in progress" });
await sees("olivia", "Restarted 20 VMs");

await weather.turn({ switch: "alert", on: true });
await sees("olivia", "HighCpu");
await take("alert", { ...ops, words: "HighCpu" });
await weather.turn({ switch: "alert", on: false });

await weather.turn({ switch: "lost", on: true });
const broken = { ...ops, words: "a new worker runs it, once", isWeatherOpen: true };
await takeBoth("weather", broken);
await weather.turn({ switch: "lost", on: false });

world.compute.weather({ match: "POST /v1/vms/:id/snapshots", times: 1, lost: "before" });
await person("olivia").types("ops", "/vm snapshot web-2 before-the-patch");
await sees("olivia", "It did not happen");
await take("unknown", { ...ops, words: "It did not happen" });
