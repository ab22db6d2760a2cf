import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Fields } from "../../sandbox/slack/fields.ts";
import { postMessage } from "../../sandbox/slack/state/messages.ts";
import { hears, wordsOf } from "../stories/words.ts";
import { startWorld, type TestWorld } from "../support/start-world.ts";
import { until } from "../support/until.ts";

let world: TestWorld;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.close());

describe("the shortcut “Restart a VM…”", () => {
  it("restarts the VM that was chosen by typing, once, and tells it in the chosen channel", async () => {
    await world.olivia.picksShortcut("restart-vm");
    await world.olivia.until(({ modals }) => modals.some(({ title }) => title === "Restart a VM"));
    await world.olivia.suggests("VM", "web-2");
    await world.olivia.submits({ VM: "web-2 in payments", "Channel for the result": "status" });
    expect((await world.ended("vm restart")).record).toMatchObject({
      channelId: "C02STATUS",
      origin: { kind: "form" },
    });
    await hears(world.vera, "status", /Restarted web-2/);
    expect(world.compute.writes().map(({ path }) => path)).toEqual([
      "/v1/vms/vm-payments-web-2/restart",
    ]);
  });

  it("is refused, on submit, to a person who may not restart", async () => {
    world.compute.forget();
    await world.vera.picksShortcut("restart-vm");
    await world.vera.until(({ modals }) => modals.length > 0);
    await world.vera.suggests("VM", "db-1");
    await world.vera.submits({ VM: "db-1 in payments", "Channel for the result": "random" });
    await world.vera.until((seen) => JSON.stringify(seen.channels).includes("can restart db-1"));
    expect(world.compute.writes()).toEqual([]);
  });
});

/** Posts a message as Vera, runs the shortcut on it, and returns what she is shown. */
async function shows(text: string, says: RegExp): Promise<string> {
  const { ts = "" } = await world.vera.types("ops", text);
  await world.vera.picksMessageShortcut("show-vms", ts);
  return wordsOf(await hears(world.vera, "ops", says));
}

describe("the shortcut “Show the VMs named here”", () => {
  it("shows each once, only to the person who asked, and ignores names within longer words", async () => {
    const said = await shows(
      "db-1 is slow; gpu-1, (gpu-1) and `vm-payments-web-2`! but not mydb-1x or web-22.",
      /3 VMs are named/,
    );
    for (const name of ["db-1", "gpu-1", "web-2"]) expect(said).toContain(name);
    expect(said.match(/gpu-1/g)).toHaveLength(2);
    expect(
      world.amir.seesChannel("ops").messages.some((one) => /VMs are named/.test(wordsOf(one))),
    ).toBe(false);
  });

  it("shows both of two VMs with one name", async () => {
    const said = await shows("web-1 again", /2 VMs are named/);
    expect(said).toMatch(/payments[^]*staging|staging[^]*payments/);
  });

  it("shows the one that is named exactly of two with one name", async () => {
    for (const [exactly, count] of [
      ["db-1 and gpu-1. staging/web-1 is down", 4],
      ["db-1, gpu-1, train-7. `web-1` in staging is RUNNING.", 5],
    ] as const) {
      const words = new RegExp(`${count} VMs are named`);
      const said = await shows(`On web-1: ${exactly} worker-1 too`, words);
      expect(said).toContain("worker-1");
      expect(said).toContain("staging");
      expect(said).not.toMatch(/web-1[^\n]*payments/);
    }
  });

  it("says so when there are none, however long or odd the message is", async () => {
    await shows("nothing of ours here", /That message names no known VM/);
    const { ts = "" } = await world.vera.types(
      "random",
      `${"word ".repeat(700)}<!channel> ../../etc`,
    );
    await world.vera.picksMessageShortcut("show-vms", ts);
    await hears(world.vera, "random", /That message names no known VM/);
  });
});

describe("the shortcut on a message of an alert system", () => {
  const section = (text: string) => ({ type: "section", text: { type: "mrkdwn", text } });
  const rich = (elements: object[]) => ({
    type: "rich_text",
    elements: [{ type: "rich_text_section", elements }],
  });
  const cell = (text: string) => ({ type: "raw_text", text });
  const shapes: [string, { text?: string; blocks?: object[]; attachments?: object[] }][] = [
    ["an attachment's text", { attachments: [{ fallback: "", text: "web-2 is down" }] }],
    ["an attachment's title", { attachments: [{ title: "[FIRING:1] HighCpu web-2" }] }],
    ["an attachment's pretext", { attachments: [{ pretext: "on web-2" }] }],
    ["an attachment's fallback", { attachments: [{ fallback: "web-2 fires" }] }],
    ["an attachment's fields", { attachments: [{ fields: [{ title: "Host", value: "web-2" }] }] }],
    ["blocks of an attachment", { attachments: [{ blocks: [section("*web-2* is down")] }] }],
    [
      "a shared message",
      { attachments: [{ message_blocks: [{ message: { blocks: [section("web-2")] } }] }] },
    ],
    ["a section", { blocks: [section("*Host:* `web-2`")] }],
    [
      "fields of a section",
      { blocks: [{ type: "section", fields: [{ type: "mrkdwn", text: "*Host*\nweb-2" }] }] },
    ],
    [
      "a header",
      { blocks: [{ type: "header", text: { type: "plain_text", text: "web-2 is down" } }] },
    ],
    [
      "a context",
      { blocks: [{ type: "context", elements: [{ type: "mrkdwn", text: "host web-2" }] }] },
    ],
    [
      "rich text",
      {
        blocks: [
          rich([
            { type: "text", text: "web", style: { bold: true } },
            { type: "text", text: "-2 is down" },
          ]),
        ],
      },
    ],
    [
      "a list of rich text",
      {
        blocks: [
          {
            type: "rich_text",
            elements: [
              {
                type: "rich_text_list",
                style: "bullet",
                elements: [
                  { type: "rich_text_section", elements: [{ type: "text", text: "web-2" }] },
                ],
              },
            ],
          },
        ],
      },
    ],
    [
      "code of rich text",
      {
        blocks: [
          {
            type: "rich_text",
            elements: [
              { type: "rich_text_preformatted", elements: [{ type: "text", text: "host=web-2" }] },
            ],
          },
        ],
      },
    ],
    [
      "a table",
      {
        blocks: [
          {
            type: "table",
            rows: [
              [cell("Host"), cell("State")],
              [cell("web-2"), cell("down")],
            ],
          },
        ],
      },
    ],
    [
      "a table of rich text",
      { blocks: [{ type: "table", rows: [[rich([{ type: "text", text: "web-2" }])]] }] },
    ],
    ["Markdown", { blocks: [{ type: "markdown", text: "**web-2** is down" }] }],
  ];

  it.each(shapes)("reads %s", async (_, shape) => {
    const { workspace } = world.slack;
    const { ts } = postMessage(workspace, {
      channelId: "C01OPS",
      userId: "U0DEPLOYBOT",
      botId: "B0DEPLOYBOT",
      text: shape.text ?? "",
      blocks: (shape.blocks ?? []) as Fields[],
      attachments: (shape.attachments ?? []) as Fields[],
    });
    await world.amir.picksMessageShortcut("show-vms", ts);
    const answer = () =>
      world.amir
        .seesChannel("ops")
        .messages.filter((one) => one.ephemeral && one.ts > ts)
        .map(wordsOf);
    await until(() => answer().join("\n")).toMatch(/One VM is named in that message:[^]*web-2/);
  });

  it("ignores text that people don't see: values of buttons, IDs, and notes of apps", async () => {
    const button = {
      type: "button",
      text: { type: "plain_text", text: "Open" },
      value: "web-2",
      action_id: "db-1",
    };
    const { ts } = postMessage(world.slack.workspace, {
      channelId: "C01OPS",
      userId: "U0DEPLOYBOT",
      botId: "B0DEPLOYBOT",
      text: "",
      blocks: [{ type: "actions", block_id: "gpu-1", elements: [button] }] as Fields[],
      metadata: { event_type: "noted", event_payload: { text: "web-2" } },
    });
    await world.amir.picksMessageShortcut("show-vms", ts);
    const answer = () =>
      world.amir
        .seesChannel("ops")
        .messages.filter((one) => one.ephemeral && one.ts > ts)
        .map(wordsOf);
    await until(() => answer().join("\n")).toContain("That message names no known VM");
  });
});
