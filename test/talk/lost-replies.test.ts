import { expect, it } from "vitest";
import { commands } from "../../src/features/index.ts";
import type { Notice } from "../../src/core/deliver/notices.ts";
import type { Interaction } from "../../src/slack/receive/interaction.ts";
import { createLostReplies } from "../../src/talk/lost-replies.ts";
import type { GatewayContext } from "../../src/talk/gateway-context.ts";
import { hears, wordsOf } from "../stories/words.ts";
import { startWorld } from "../support/start-world.ts";

const base = {
  id: "command:1",
  at: 1,
  userId: "U1",
  teamId: "T1",
  channelId: "C1",
  triggerId: "1",
};

async function noticesAbout(interaction: Interaction, made?: object): Promise<Notice[]> {
  const told: Notice[] = [];
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- nothing else is asked of it
  const gateway = { commands, store: { madeBy: async () => made } } as unknown as GatewayContext;
  const tellLostReply = createLostReplies(
    async (notice) => told.push(notice) > 0,
    () => gateway,
  );
  await tellLostReply(interaction);
  return told;
}

const typed = (text: string): Interaction => ({ ...base, kind: "command", text });
const buttonsOf = (notice: Notice | undefined) =>
  JSON.stringify(notice?.message.blocks).match(/"text":"(Run it now|Ask again)"/g) ?? [];

it("an answer that was lost is told to whoever asked, by their words, never by what it said", async () => {
  const [notice] = await noticesAbout(typed("gatehouse freeze <!channel>"));
  expect(notice).toMatchObject({ id: "unheard:command:1", channelId: "U1" });
  expect(notice?.message.text).toMatch(/^Slack lost Gatehouse's answer to \/gatehouse freeze/);
  expect(notice?.message.text).not.toContain("<!channel>");
  expect(JSON.stringify(notice?.message.blocks)).toContain("nothing was done");
  expect(buttonsOf(notice)).toEqual([]);
});

it("a lost answer to a button is told, too; the Home tab is just opened again", async () => {
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

it("a lost answer to a mention is told by its words, with a button or a way", async () => {
  const mentioned = (text: string): Interaction => ({ ...base, kind: "mention", text });
  const [read] = await noticesAbout(mentioned("vm list"));
  expect(read?.message.text).toContain("answered “vm list”");
  expect(buttonsOf(read)).toEqual(['"text":"Ask again"']);
  const [words] = await noticesAbout(mentioned("do something about it"));
  expect(words?.message.text).toBe(
    "Slack lost Gatehouse's answer to “do something about it”. Mention Gatehouse again with these words.",
  );
});

it("a reply that was lost says of a change of one target whether it has run, and offers what has not", async () => {
  const [not] = await noticesAbout(typed("vm start gpu-1"));
  expect(not?.message.text).toBe("/vm start gpu-1 has not run: Slack was unavailable.");
  expect(buttonsOf(not)).toEqual(['"text":"Run it now"']);
  const done = { record: { id: "r-7fk3m9q2xw" }, state: "done" };
  const [made] = await noticesAbout(typed("vm start gpu-1"), done);
  expect(made?.message.text).toBe("/vm start gpu-1 was requested: done (r-7fk3m9q2xw).");
  expect(buttonsOf(made)).toEqual([]);
});

it("offers a read again, and nothing where a button can't stand for the words", async () => {
  expect(buttonsOf((await noticesAbout(typed("vm list")))[0])).toEqual(['"text":"Ask again"']);
  for (const text of ["vm restart web-*", "vm stop db-1 --break-glass it burns", "make it work"])
    expect(buttonsOf((await noticesAbout(typed(text)))[0]), text).toEqual([]);
});

it("a command runs once, however often its button is pressed", async () => {
  await using world = await startWorld();
  const { olivia, slack } = world;
  // Slack says neither who she is, nor takes the answer that tells her so
  slack.weather.add({ method: "users.info", kind: "error", error: "internal_error" });
  slack.weather.add({ method: "response_url", kind: "server-error" });
  slack.weather.add({ method: "chat.postEphemeral", kind: "server-error" });
  await olivia.types("ops", "/vm start gpu-1");
  const told = await hears(olivia, "gatehouse", /\/vm start gpu-1 has not run/);
  expect(wordsOf(told)).toMatch(/\[Run it now\]/);
  expect(world.compute.writes()).toEqual([]);
  slack.weather.clear();
  await olivia.presses("Run it now", { in: told.ts });
  await world.ended("vm start");
  await olivia.presses("Run it now", { in: told.ts });
  await hears(olivia, "gatehouse", /You already requested this/);
  expect(world.compute.writes().map(({ path }) => path)).toEqual(["/v1/vms/vm-ml-gpu-1/start"]);
});
