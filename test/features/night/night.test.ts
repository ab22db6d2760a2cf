import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { commandsWith } from "../../../src/features/define-feature.ts";
import { nights } from "../../../src/features/night/index.ts";
import { parseCommand } from "../../../src/registry/parse.ts";
import { runAudit } from "../../../src/cli/audit.ts";
import { hears, wordsOf } from "../../stories/words.ts";
import { startWorld, testTiming, type TestWorld } from "../../support/start-world.ts";
import { exportedText, testFolder } from "../../audit/trail-of.ts";
import { alertmanagerBody, send, startAlertWorld } from "../alerts/sending.ts";
import { until } from "../../support/until.ts";
import { isOffered } from "../../support/is-offered.ts";

describe("/gatehouse night", () => {
  const commands = commandsWith([nights]);

  it.each([
    ["gatehouse night 1h --file", { since: "1h", file: true }],
    ["gatehouse night --file 1h", { since: "1h", file: true }],
    ["gatehouse night since —file yesterday 20:00", { since: "since yesterday 20:00", file: true }],
    ["gatehouse night 8pm --skip 20", { since: "8pm", skip: "20" }],
    [
      "gatehouse night last night --skip=20 --file",
      { since: "last night", skip: "20", file: true },
    ],
  ])("takes its flags anywhere: %s", (text, input) => {
    expect(parseCommand(text, commands)).toMatchObject({
      command: { name: "gatehouse night" },
      input,
    });
  });

  it("refuses a flag that it hasn't, wherever it stands", () => {
    for (const text of ["gatehouse night --flie 1h", "gatehouse night 1h --flie"])
      expect(parseCommand(text, commands)).toMatchObject({
        refusal: { text: "/gatehouse night has no --flie. Nothing was done." },
      });
  });
});

describe("a question about what happened", () => {
  let world: TestWorld;
  beforeAll(async () => {
    world = await startWorld();
  });
  afterAll(() => world.close());

  async function answerTo(text: string): Promise<string> {
    const own = () => world.olivia.seesChannel("ops").messages.filter(({ ephemeral }) => ephemeral);
    const before = own().length;
    await world.olivia.types("ops", text);
    await world.olivia.until(() => own().length > before);
    return own().slice(before).map(wordsOf).join("\n");
  }

  it.each([
    ["@gatehouse what happened last night?", /since .*5:00 PM UTC/],
    ["@gatehouse what happened?", /since /],
    ["@gatehouse what's happened since yesterday?", /since .*11:00 PM UTC/],
    ["@gatehouse what did I miss?", /since /],
    ["@gatehouse what failed last night?", /since .*5:00 PM UTC/],
    ["@gatehouse what's going on?", /since /],
    ["/gatehouse what happened overnight", /since .*5:00 PM UTC/],
    ["/gatehouse night last night", /since .*5:00 PM UTC/],
  ])("is answered with the night: %s", async (text, since) => {
    const said = await answerTo(text);
    expect(said).toMatch(/^(The night since|☀️ Nothing happened since)/);
    expect(said).toMatch(since);
  });
});

describe("the night as one page", () => {
  it("tells each alert and each act with who approved, what was read, and when it ended", async () => {
    await using world = await startAlertWorld();
    const { olivia, amir, ada } = world;
    await send(world, "prometheus", alertmanagerBody([{}]));
    await hears(olivia, "ops", /🔥 HighCpu on web-2/);
    await olivia.types("ops", "/vm restart web-2");
    await world.ended("vm restart");
    await send(
      world,
      "prometheus",
      alertmanagerBody([{ status: "resolved", endsAt: new Date().toISOString() }]),
    );
    await hears(olivia, "ops", /✅ HighCpu on web-2 ended/);
    await olivia.types("ops", "/vm snapshot db-1 nightly");
    await world.ended("vm snapshot");
    await ada.types("ops", '/vm restore db-1 nightly --break-glass "the index is corrupt"');
    await ada.until(({ modals }) => modals.some(({ title }) => title.startsWith("Break-glass")));
    await ada.submits({ "Type db-1 to confirm": "db-1" });
    await world.settled();
    await olivia.types("ops", "/project delete staging");
    await olivia.until(({ modals }) => modals.some(({ submit }) => submit === "Request approval"));
    await olivia.submits({ "Type staging to confirm": "staging", Reason: "it is empty" });
    const card = await hears(amir, "ops", /staging[^]*\[Deny\]/);
    await amir.presses("Deny", { in: card.ts });
    await world.settled();
    await amir.types("ops", "/gatehouse freeze storage is failing");
    await hears(ada, "ops", /froze all changes/);
    await ada.types("ops", "/gatehouse thaw");
    await hears(ada, "ops", /Changes are allowed again/);
    await send(world, "prometheus", alertmanagerBody([{ startsAt: new Date().toISOString() }]));
    await hears(olivia, "ops", /🔥 HighCpu on web-2[^]*ended.*again|🔥 Fires again/);

    await world.vera.types("ops", "/gatehouse night");
    const told = await hears(world.vera, "ops", /The night since/);
    expect(told.ephemeral).toBe(true);
    const words = wordsOf(told);
    const at = String.raw`\w{3} \d+, \d+:\d\d [AP]M UTC`;
    const second = String.raw`\d+:\d\d:\d\d [AP]M UTC`;
    expect(words).toMatch(new RegExp(`^The night since ${at}: 8 acts, oldest first\\.`));
    const lines = [
      `${at} ✅ HighCpu on web-2 ended ${at}, says prometheus\\.`,
      `${at} ✅ olivia restarted web-2 in .+\\.\nSent ${second}, REBOOTING seen ${second}, RUNNING read ${second}\\. Ended ${second}`,
      `${at} ✅ olivia took a snapshot of db-1 as nightly in .+\\.`,
      `${at} ✅ ada restored db-1 from nightly in .+ 🚨 without approval \\(break-glass\\): “the index is corrupt”; nobody has signed the review\\.`,
      `${at} ❌ olivia asked for the deletion of staging \\(“it is empty”\\), but amir denied it\\.`,
      `${at} 🧊 amir froze all changes: “storage is failing”\\.`,
      `${at} 🧊 ada allowed changes again, which ended the freeze by amir: “storage is failing”\\.`,
      `${at} 🔥 HighCpu on web-2 fires, says prometheus\\.`,
    ];
    // In the order in which it happened
    expect(words).toMatch(new RegExp(lines.join("[^]*")));
    expect(words).toMatch(/\[As a file\]/);
  });

  it("tells a team nothing of another's VMs, in a page, a file, and a channel; a freeze is everybody's", async () => {
    const policy = `access: { view: [], operate: [], approve: [], administer: ["U0ADA"] }
teams:
  pay: { projects: ["payments"], operate: ["U0OLIVIA"], channel: C01OPS }
  lab: { projects: ["ml"], operate: ["U0AMIR"], view: ["U0VERA"], channel: C02STATUS }
${testTiming}
`;
    await using world = await startWorld({ policy });
    const { olivia, amir, vera, ada } = world;
    await olivia.types("ops", "/vm restart web-2");
    await world.ended("vm restart");
    await ada.types("ops", "/gatehouse freeze storage is failing");
    await hears(ada, "ops", /froze all changes/);
    await olivia.types("ops", "/gatehouse night");
    await hears(
      olivia,
      "ops",
      /2 acts that you can see, [^]*olivia restarted web-2[^]*ada froze all changes/,
    );
    for (const who of [amir, vera]) {
      await who.types("status", "/gatehouse night");
      const told = wordsOf(
        await hears(who, "status", /: 1 act that you can see, [^]*ada froze all changes/),
      );
      expect(told).not.toMatch(/web-2|olivia/);
    }
    // Olivia sees her own, and the other team's channel doesn't
    await olivia.types("status", "/gatehouse night --file 1h");
    await hears(
      olivia,
      "status",
      /: 1 act that you can see here, each with its audit records[^]*only what this channel may see/,
    );
    const [file] = [...world.slack.workspace.files.values()];
    expect(file?.bytes?.toString()).not.toMatch(/web-2|vm restart/);
  });
});

describe("a night in a channel of no team", () => {
  it("says that it tells only what the channel may see, and where the rest is; so do a handover and what changed", async () => {
    const policy = `access: { view: [], operate: [], approve: [], administer: ["U0ADA"] }
teams:
  pay: { projects: ["payments"], operate: ["U0OLIVIA"], channel: C02STATUS }
${testTiming}
`;
    await using world = await startWorld({ policy });
    const { olivia, ada } = world;
    await olivia.types("status", "/vm restart web-2");
    await world.ended("vm restart");
    const rest =
      "An answer here tells only what this channel may see. Your team's channel, or a direct message to Gatehouse, tells the rest.";
    await olivia.types("ops", "/gatehouse night");
    const nothing = wordsOf(await hears(olivia, "ops", /happened since/));
    expect(nothing).toMatch(/^☀️ Nothing that you can see here happened since /);
    expect(nothing).toContain(rest);
    expect(nothing).not.toMatch(/web-2|payments|pay:/);
    if (isOffered("gatehouse digest")) {
      await olivia.types("ops", "/gatehouse digest handover");
      const handover = wordsOf(await hears(olivia, "ops", /Handover/));
      expect(handover).toMatch(/only what you can see here/);
      expect(handover).toContain(rest);
    }
    // Where all of hers is told, nothing is missing but what she can't see anyway
    await olivia.types("status", "/gatehouse night");
    const own = wordsOf(await hears(olivia, "status", /The night since/));
    expect(own).toMatch(/: 1 act that you can see, oldest first\.[^]*olivia restarted web-2/);
    expect(own).not.toContain("this channel");
    // Ada sees everything, and #ops doesn't
    await ada.types("ops", "/gatehouse night");
    expect(wordsOf(await hears(ada, "ops", /happened since/))).toContain(rest);
    await ada.types("gatehouse", "gatehouse night");
    const whole = wordsOf(await hears(ada, "gatehouse", /The night since/));
    expect(whole).toMatch(/: 1 act, oldest first\.[^]*olivia restarted web-2/);
  });
});

describe("a VM that fails or stops by itself", () => {
  it("is told with what was seen, to those who see it, and no request is blamed", async () => {
    const policy = `access: { view: [], operate: [], approve: [], administer: ["U0ADA"] }
teams:
  pay: { projects: ["payments"], operate: ["U0OLIVIA"], channel: C01OPS }
  lab: { projects: ["ml"], operate: ["U0AMIR"], channel: C02STATUS }
alerts: { channel: C02STATUS }
${testTiming}
`;
    await using world = await startWorld({ policy, pace: { inventoryRefreshMs: 300 } });
    const { olivia, amir } = world;
    await until(() => world.client.hlen(world.key("seen-statuses"))).toBeGreaterThan(2);
    world.compute.edit.setStatus({ vm: "vm-payments-web-1", status: "ERROR" });
    await hears(olivia, "ops", /web-1 in payments went to ERROR/);
    await olivia.types("ops", "/gatehouse night");
    const told = await hears(olivia, "ops", /The night since/);
    expect(wordsOf(told)).toMatch(
      /1 act that you can see, [^]*🔴 web-1 went to ERROR, was RUNNING: no request to Gatehouse did that\./,
    );
    world.compute.edit.setStatus({ vm: "vm-payments-web-1", status: "RUNNING" });
    const again = () =>
      olivia.types("ops", "/gatehouse night").then(() =>
        olivia
          .seesChannel("ops")
          .messages.map(wordsOf)
          .some((text) => text.includes("web-1 left ERROR and is RUNNING: no request")),
      );
    await until(again).toBe(true);
    await amir.types("status", "/gatehouse night");
    expect(wordsOf(await hears(amir, "status", /happened since/))).not.toContain("web-1");
  });
});

describe("a night", () => {
  let world: TestWorld;
  beforeAll(async () => {
    world = await startWorld();
  });
  afterAll(() => world.close());

  it("is refused in words when it can't tell since when, and says when nothing happened", async () => {
    const { vera } = world;
    await vera.types("ops", "/gatehouse night next week");
    await hears(vera, "ops", /Gatehouse can't tell since when: next week\./);
    await vera.types("ops", "/gatehouse night 2020-01-01");
    await hears(vera, "ops", /A night goes back 7 days at most\./);
    await vera.types("ops", "/gatehouse night 5 min");
    await hears(vera, "ops", /☀️ Nothing happened since /);
  });

  it("is a file whose every line audit verify proves, with no record of anything else", async () => {
    await using folder = await testFolder();
    const { olivia, vera } = world;
    await vera.types("ops", "/vm stop web-2");
    await hears(vera, "ops", /can stop web-2/);
    await olivia.types("ops", "/vm restart web-2");
    await world.ended("vm restart");
    await olivia.types("ops", "/gatehouse night --file 1h");
    await hears(olivia, "ops", /The night is a file in your direct messages: 1 act, each with/);
    const files = [...world.slack.workspace.files.values()];
    const text = files.find(({ name }) => name.startsWith("night-"))?.bytes?.toString() ?? "";
    const file = path.join(folder.path, "night.json");
    await writeFile(file, text);
    expect(await readFile(file, "utf8")).not.toMatch(/refusal|U0VERA/);
    const whole = path.join(folder.path, "whole.json");
    await writeFile(whole, await exportedText({ redis: world.client, key: world.key }));
    let said = "";
    const access = () => ({ redisUrl: undefined });
    const terminal = { access, write: (more: string) => void (said += more) };
    expect(await runAudit(["verify", file, "--against", whole], terminal), said).toBe(0);
    expect(said).toMatch(
      /^From .* as far as olivia sees it: 1 act\.\nProven: 1 of 1 act, by \d records/,
    );
    expect(said).toMatch(/✓ \S+ ✅ olivia restarted web-2 in .+ · Sent .* \(records \d+ to \d+\)/);
    await writeFile(file, text.replace("olivia restarted", "nobody restarted"));
    expect(await runAudit(["verify", file, "--against", whole], terminal)).toBe(1);
  });

  it("has pages of 20 acts, the oldest first", async () => {
    for (let n = 0; n < 11; n++) {
      await world.store.freeze({ by: "ada", reason: `reason ${n}` });
      await world.store.thaw({ id: "U0ADA", name: "ada" });
    }
    await world.vera.types("ops", "/gatehouse night 1h");
    const first = await hears(world.vera, "ops", /1 to 20 of 23 are shown/);
    await world.vera.presses("Next 3", { in: first.ts });
    const rest = wordsOf(await hears(world.vera, "ops", /21 to 23 of 23 are shown/));
    expect(rest).toMatch(/froze all changes: “reason 10”[^]*allowed changes again/);
  });
});
