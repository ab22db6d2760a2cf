import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startGatehouseSlack } from "../../demo/world.ts";
import { validateBlocks } from "../../src/slack/validate-blocks.ts";
import { runDoctor } from "../../src/cli/doctor.ts";
import { keepRendered } from "../support/keep-rendered.ts";
import { startWorld, testPolicy } from "../support/start-world.ts";
import { hears } from "../stories/words.ts";
import { handedToPrograms } from "../../src/features/index.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "rendered-"));
});
afterEach(() => rm(folder, { recursive: true }));

const run = promisify(execFile);
/** The script, with its exit code. */
const script = (apiUrl: string, file: string) =>
  run(process.execPath, ["scripts/validate-blocks.ts", "--api", apiUrl, file]).then(
    ({ stdout }) => ({ code: 0, stdout }),
    (error: { code: number; stdout: string }) => error,
  );

const section = { type: "section", text: { type: "mrkdwn", text: "fine" } };

describe("blocks.validate", () => {
  it("is asked without a token about messages and views, and says where what is wrong", async () => {
    await using slack = await startGatehouseSlack();
    expect(await validateBlocks(slack.apiUrl, { message: { blocks: [section] } })).toEqual({
      kind: "valid",
    });
    const bad = { message: { blocks: [{ type: "section", text: { type: "mrkdwn", text: "" } }] } };
    expect(await validateBlocks(slack.apiUrl, bad)).toEqual({
      kind: "invalid",
      complaints: ["/blocks/0/text/text: must be more than 0 characters"],
    });
    const view = { type: "modal", blocks: [section] };
    expect(await validateBlocks(slack.apiUrl, { view })).toEqual({
      kind: "invalid",
      complaints: ["/view: missing required field: title"],
    });
    slack.weather.add({ method: "blocks.validate", kind: "rate-limited", retryAfter: 7, times: 1 });
    expect(await validateBlocks(slack.apiUrl, { view })).toEqual({
      kind: "limited",
      retryAfterMs: 7000,
    });
    expect(JSON.stringify(slack.calls("blocks.validate"))).not.toContain("xoxb");
  });

  it("is asked by a script about all that was rendered, which names what is refused", async () => {
    const file = path.join(folder, "rendered.jsonl");
    await using world = await startWorld({
      slack: { onCall: (record) => keepRendered(record, file) },
    });
    await world.olivia.types("ops", "/vm list");
    await world.olivia.types("ops", "/gatehouse help all");
    await world.olivia.types("ops", "/vm restart web-2");
    await world.ended("vm restart");
    await hears(world.olivia, "ops", /What you can run/);
    const good = await script(world.slack.apiUrl, file);
    expect(good).toMatchObject({ code: 0 });
    expect(good.stdout).toMatch(/^[4-9] different of \d+ asked about, 0 refused\n$/);
    const odd = JSON.stringify({ message: { blocks: [{ type: "sextion" }] } });
    await writeFile(file, `${await readFile(file, "utf8")}${odd}\n`);
    const bad = await script(world.slack.apiUrl, file);
    expect(bad).toMatchObject({ code: 1 });
    expect(bad.stdout).toContain("✗ /blocks/0/type: unsupported type: sextion");
  });

  it("is offered by doctor, for each kind of message that Gatehouse makes", async () => {
    await using world = await startWorld({ policy: testPolicy });
    let said = "";
    await runDoctor(["--messages"], {
      ...handedToPrograms,
      env: world.env,
      write: (text) => void (said += text),
    });
    for (const kind of ["texts", "help", "buttons", "menus", "tables", "charts of lines", "forms"])
      expect(said).toContain(`✓ ${kind}: Slack takes them`);
    world.slack.weather.add({ method: "blocks.validate", kind: "error", error: "unknown_method" });
    await runDoctor(["--messages"], {
      ...handedToPrograms,
      env: world.env,
      write: (text) => void (said += text),
    });
    expect(said).toContain("! tables: not asked: unknown_method");
  });
});
