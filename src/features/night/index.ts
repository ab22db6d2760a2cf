import { defineFeature } from "../define-feature.ts";
import { createNights, nightsOf } from "./create-night.ts";
import { night } from "./night.ts";
import { nightButton } from "./render-night.ts";

/**
 * Tells a night on one page: each alert and each change, who approved it, what was read, and when it
 * ended; and as a file that the audit trail proves.
 */
export const nights = defineFeature({
  name: "night",
  commands: [night],
  needs: ["redis", "key", "inventory", "store", "changes", "personName", "running", "log"],
  start(on) {
    const all = createNights({
      ...on,
      parts: () => on.running().flatMap((feature) => feature.night ?? []),
    });
    return {
      services: [nightsOf.providedBy(all)],
      digest: {
        name: "the night",
        read: async ({ since }) => ({ all: [], buttons: [nightButton("The night", since)] }),
      },
    };
  },
});
