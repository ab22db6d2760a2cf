import { expect, it } from "vitest";
import { ofSeenVms } from "../../src/core/events/event.ts";
import { defineFeature } from "../../src/features/define-feature.ts";
import { features } from "../../src/features/index.ts";
import { md, name } from "../../src/messages/markdown.ts";
import { createPending } from "../../src/redis/pending.ts";
import { hears, wordsOf } from "../stories/words.ts";
import { startWorld } from "../support/start-world.ts";
import { isOffered } from "../support/is-offered.ts";

/** What a feature has to bring for a new kind of event. */
const longConsoles = defineFeature({
  name: "long-consoles",
  start: () => ({
    events: {
      name: "long consoles",
      recordKinds: ["console-long"],
      topic: "trouble",
      async read(entries, about) {
        const seen = await ofSeenVms(entries, about);
        return seen.map(({ id, at, vm }) => ({
          id,
          kind: { words: ["long console", "long consoles"], weight: "decision" },
          at,
          endedAt: at,
          text: md`🖥️ A console on ${name(vm.name)} was open for more than an hour.`,
          records: [id],
        }));
      },
    },
  }),
});

const sentence = "🖥️ A console on web-2 was open for more than an hour.";

it("a new kind of event is told by the night, digests, handovers, subscriptions, recaps, and the audit trail without a line about it there, for those who see its VM", async () => {
  await using world = await startWorld({
    features: [...features, longConsoles],
    pace: { sweepMs: 500 },
  });
  const { olivia, ada } = world;
  const since = Date.now();
  if (isOffered("gatehouse subscribe")) {
    await olivia.types("status", "/gatehouse subscribe web-2 trouble");
    await hears(olivia, "status", /Gatehouse tells/);
  }
  await olivia.types("ops", "/vm restart db-1");
  await world.ended("vm restart");
  for (const id of ["vm-payments-web-2", "vm-payments-web-1", "vm-nowhere"])
    await world.store.note({ what: "console-long", target: id });

  for (const [command, title] of [
    ["/gatehouse night", /^The night/],
    ["/gatehouse digest now", /^Digest/],
    ["/gatehouse handover", /^Handover/],
  ] as const) {
    if (!isOffered(command.includes("night") ? "gatehouse night" : "gatehouse digest")) continue;
    await olivia.types("ops", command);
    const words = wordsOf(await hears(olivia, "ops", title));
    expect(words).toContain(` UTC ${sentence}`);
    expect(words.match(/🖥️/gu)).toHaveLength(2);
  }
  await ada.types("ops", "/gatehouse audit");
  expect(wordsOf(await hears(ada, "ops", /^Audit trail/))).toContain(` UTC ${sentence}`);

  if (isOffered("gatehouse subscribe")) {
    await hears(olivia, "status", new RegExp(`^${sentence}`, "u"));
    const feed = olivia.seesChannel("status").messages.map(wordsOf);
    expect(feed.filter((words) => words.includes("🖥️"))).toHaveLength(1);
  }
  if (features.some((feature) => feature.name === "outages")) {
    const recaps = createPending(world.client, world.key, "recap");
    const outage = `service-${since} ${since} ${Date.now()}`;
    await world.client.zadd(recaps.list, 0, recaps.memberOf(outage));
    const recap = wordsOf(await hears(olivia, "ops", /was unavailable/));
    expect(recap).toContain(sentence);
    expect(recap).toMatch(/1 request ran/);
  }
});
