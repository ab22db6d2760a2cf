import { expect, it } from "vitest";
import { createQueues, type InteractionJob } from "../../src/queue/queues.ts";
import { startWorld } from "../support/start-world.ts";

const elevenMinutesMs = 11 * 60_000;

it("what a gateway left for too long isn't begun again: the person reads what it had become, or that nobody knows", async () => {
  let left: InteractionJob | undefined;
  await using world = await startWorld({
    async at(point) {
      if (point === "ack") left ??= (await interactions.getDelayed())[0]?.data;
    },
  });
  const { interactions } = createQueues(world.client, world.key.prefix);
  await world.olivia.types("ops", "/vm restart web-2");
  await world.ended("vm restart");
  if (left === undefined) throw new Error("it was never stored");
  /** As if its gateway had died before it noted that it was handled, and none was there for eleven minutes. */
  async function foundLate(id: string): Promise<void> {
    const interaction = { ...left?.interaction, id };
    const timestamp = Date.now() - elevenMinutesMs;
    await world.client.del(world.key("seen", id));
    await interactions.add("command", { interaction } as InteractionJob, { timestamp });
  }
  const told = (words: string) => world.olivia.until((all) => JSON.stringify(all).includes(words));
  await foundLate(left.interaction.id);
  await told("You already requested this. Gatehouse didn't run it again.");
  await foundLate("command:of-nothing");
  await told("doesn't know how far it came");
  expect(world.compute.writes()).toHaveLength(1);
  await interactions.close();
});
