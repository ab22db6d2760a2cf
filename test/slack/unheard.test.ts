import { expect, it } from "vitest";
import type { Ask } from "../../src/slack/ask.ts";
import type { Notice } from "../../src/slack/announce.ts";
import { createUnheard } from "../../src/slack/unheard.ts";

const base = {
  id: "command:1",
  at: 1,
  userId: "U1",
  teamId: "T1",
  channelId: "C1",
  triggerId: "1",
};

async function toldOf(ask: Ask): Promise<Notice[]> {
  const told: Notice[] = [];
  const unheard = createUnheard(async (notice) => told.push(notice) > 0);
  await unheard(ask);
  return told;
}

it("an answer that was lost is told to whoever asked, by their words, never by what it said", async () => {
  const [notice] = await toldOf({ ...base, kind: "command", text: "vm console <!channel>" });
  expect(notice).toMatchObject({ id: "unheard:command:1", channelId: "U1" });
  expect(notice?.message.text).toMatch(/^Slack was away when I answered .*\/vm console/);
  expect(notice?.message.text).not.toContain("<!channel>");
  expect(JSON.stringify(notice?.message.blocks)).toContain("nothing was done");
});

it("of a button too; the Home tab is just opened again", async () => {
  const press: Ask = { ...base, kind: "button", action: "a", value: "secret", ephemeral: false };
  const [notice] = await toldOf(press);
  expect(notice?.message.text).toContain("what you asked for a moment before");
  expect(JSON.stringify(notice)).not.toContain("secret");
  expect(await toldOf({ ...base, kind: "home" })).toEqual([]);
});
