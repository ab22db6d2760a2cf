import { expect, it } from "vitest";
import { ofSeenVms } from "../../src/core/events/event.ts";
import { defineFeature } from "../../src/features/define-feature.ts";
import { features } from "../../src/features/index.ts";
import { md, name } from "../../src/messages/markdown.ts";
import { hears, wordsOf } from "../stories/words.ts";
import { startWorld } from "../support/start-world.ts";
import { isOffered } from "../support/is-offered.ts";

/** What a feature has to bring for a new kind of event. */
const parcels = defineFeature({
  name: "parcels",
  start: () => ({
    events: {
      name: "parcels",
      recordKinds: ["parcel"],
      async read(entries, about) {
        const seen = await ofSeenVms(entries, about);
        return seen.map(({ id, at, vm }) => ({
          id,
          kind: { words: ["parcel", "parcels"], weight: "decision" },
          at,
          endedAt: at,
          text: md`📦 A parcel for ${name(vm.name)} came.`,
          records: [id],
        }));
      },
    },
  }),
});

it("a new kind of event is in the night, digests, and handovers without a line about it there, for those who see its VM", async () => {
  await using world = await startWorld({ features: [...features, parcels] });
  const { olivia } = world;
  for (const id of ["vm-payments-web-2", "vm-nowhere"])
    await world.store.note({ what: "parcel", target: id });
  for (const [command, title] of [
    ["/gatehouse night", /^The night/],
    ["/gatehouse digest now", /^Digest/],
    ["/gatehouse handover", /^Handover/],
  ] as const) {
    if (!isOffered(command.includes("night") ? "gatehouse night" : "gatehouse digest")) continue;
    await olivia.types("ops", command);
    const words = wordsOf(await hears(olivia, "ops", title));
    expect(words).toMatch(/ UTC 📦 A parcel for web-2 came\.$/m);
    expect(words.match(/📦/g)).toHaveLength(1);
  }
});
