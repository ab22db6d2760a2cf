import { expect, it } from "vitest";
import type { Notice } from "../../../src/core/deliver/deliver.ts";
import type { Interaction } from "../../../src/slack/receive/interaction.ts";
import { createLostReplies } from "../../../src/core/deliver/lost-replies.ts";

const base = {
  id: "command:1",
  at: 1,
  userId: "U1",
  teamId: "T1",
  channelId: "C1",
  triggerId: "1",
};

async function noticesAbout(interaction: Interaction): Promise<Notice[]> {
  const told: Notice[] = [];
  const tellLostReply = createLostReplies(async (notice) => told.push(notice) > 0);
  await tellLostReply(interaction);
  return told;
}

it("an answer that was lost is told to whoever asked, by their words, never by what it said", async () => {
  const [notice] = await noticesAbout({ ...base, kind: "command", text: "vm console <!channel>" });
  expect(notice).toMatchObject({ id: "unheard:command:1", channelId: "U1" });
  expect(notice?.message.text).toMatch(/^Slack lost Gatehouse's answer to \/vm console/);
  expect(notice?.message.text).not.toContain("<!channel>");
  expect(JSON.stringify(notice?.message.blocks)).toContain("nothing was done");
});

it("of a button too; the Home tab is just opened again", async () => {
  const press: Interaction = {
    ...base,
    kind: "button",
    action: "a",
    value: "secret",
    ephemeral: false,
  };
  const [notice] = await noticesAbout(press);
  expect(notice?.message.text).toContain("Gatehouse's answer to you");
  expect(JSON.stringify(notice)).not.toContain("secret");
  expect(await noticesAbout({ ...base, kind: "home" })).toEqual([]);
});
